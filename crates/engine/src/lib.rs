//! Tensors, automatic differentiation and operations.
//!
//! The engine knows no device: backends implement [`backend::Backend`] and register themselves.
//! Every operation passes [`transform::bind`].

pub use flambeau_base as base;
pub use flambeau_ir as ir;

pub mod autograd;
pub mod backend;
mod hash;
pub mod ops;
pub mod random;
pub mod tensor;
pub mod transform;

pub use tensor::{Storage, Tensor};
