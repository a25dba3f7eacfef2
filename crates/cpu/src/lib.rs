//! The CPU backend: allocator, thread pool, tile executor, matrix product.

pub mod alloc;
pub mod gemm;
pub mod isa;
pub mod math;
pub mod pool;
