//! A PyTorch-class tensor and deep-learning engine.
//!
//! ```
//! use flambeau::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?.requiring_grad()?;
//! let y = (&(&x * &x)? + 1.0)?.sum()?;
//! y.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```

// The backends that this build has; each registers itself.
use flambeau_cpu as _;

pub use flambeau_base as base;
pub use flambeau_data as data;
pub use flambeau_engine::{Storage, Tensor, autograd, backend, ir, ops, random, tensor, transform};
pub use flambeau_io as io;

/// Layers, losses, initialisers and optimizers, with `#[derive(Module)]`.
pub mod nn {
    pub use flambeau_derive::Module;
    pub use flambeau_nn::*;
}

/// How the CPU works: memory and threads.
pub mod cpu {
    pub use flambeau_cpu::alloc::{Stats, empty_cache, reset_peak, stats};
    pub use flambeau_cpu::pool::{num_threads, set_num_threads};
}

/// What most programs use.
pub mod prelude {
    pub use crate::Tensor;
    pub use crate::autograd::no_grad;
    pub use crate::base::{DType, Device, Error, Result, Scalar};
    pub use crate::nn::Module;
    pub use crate::random::manual_seed;
}

/// The Rust program of the front page, which runs as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

/// The chapter on derivatives: its programs run as they stand.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/differentiation.md")]
struct Differentiation;
