//! The CPU backend: allocator, thread pool, tile executor, matrix product.

pub mod alloc;
pub mod isa;
pub mod pool;
