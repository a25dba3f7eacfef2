//! Tensors, automatic differentiation and operations.
