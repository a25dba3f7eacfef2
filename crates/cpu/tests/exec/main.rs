//! Programs and reductions on the CPU, through the engine's tensors and through the backend itself.

mod cast;
mod common;
mod layouts;
mod matmul;
mod reduce;
mod steps;
