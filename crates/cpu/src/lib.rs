//! The CPU backend: allocator, thread pool, tile executor, matrix product, kernels of layers.

pub mod alloc;
pub mod backend;
pub(crate) mod exec;
pub(crate) mod fft;
pub mod gemm;
pub(crate) mod index;
pub mod isa;
pub(crate) mod linalg;
pub mod math;
pub(crate) mod nn;
pub mod pool;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod sort;

pub use backend::Cpu;
