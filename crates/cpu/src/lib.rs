//! The CPU backend: allocator, thread pool, tile executor, matrix product.

pub mod math;
