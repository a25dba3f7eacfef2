//! Tensors, automatic differentiation and operations.

pub mod random;
