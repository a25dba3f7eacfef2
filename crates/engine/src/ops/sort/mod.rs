//! Order: sorting, the largest and smallest, what there is but once.

mod rows;
mod sorted;
mod unique;

pub use sorted::{Selected, Sorted};
pub use unique::{Unique, unique, unique_consecutive};

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] = &[rows::OPS, unique::OPS];
