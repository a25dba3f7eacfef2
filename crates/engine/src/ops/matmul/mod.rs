//! Products of matrices and what is made of them.

mod einsum;
mod linear;
mod more;
mod product;
mod rows;

pub use einsum::einsum;
pub use linear::Linear;
pub use more::multi_dot;
pub use product::Product;

use super::table::Op;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[rows::OPS, linear::OPS, einsum::OPS, more::OPS];
