//! The random streams of the CPU: PyTorch 2.15's, word for word.
//!
//! A [`Generator`] is a handle on a 32-bit Mersenne twister (Matsumoto and Nishimura, 1998) and on the second value
//! of the last normal pair. Every draw takes words from it in a fixed order, so the same seed gives the numbers that
//! PyTorch 2.15 gives on an x86-64 machine with AVX2 and FMA. How many words a draw takes stands at each draw; all
//! of it was measured on PyTorch 2.15 by its state before and after. Nothing here knows of tensors: draws fill
//! slices.
//!
//! ```
//! use flambeau_engine::random::Generator;
//! let generator = Generator::with_seed(0);
//! let mut x = [0f32; 3];
//! generator.lock().uniform(&mut x, 0.0, 1.0)?;
//! assert_eq!(x, [0.49625659, 0.76822180, 0.08847743]);
//! # Ok::<(), flambeau_base::Error>(())
//! ```
//!
//! # Fractions and words
//!
//! `f32`, `f16` and `bf16` uniforms take one word and keep its low 24 bits; `f64` takes two words, the first one
//! the high half, and keeps the low 53 bits. Every other continuous draw (small normals, scalar Bernoulli,
//! exponential, ...) works in `f64` whatever the type of the result, and so takes two words a number.
//!
//! # Strided tensors
//!
//! PyTorch fills a tensor in memory order, the dimension of the smallest stride fastest, also where that is not the
//! logical order: a transposed matrix gets the draws of its base. A caller with strided memory draws into a dense
//! buffer and scatters in that order. So it is for `x.uniform_()` and the like, for `rand_like` and its kin, and for
//! the noise of dropout and of `multinomial` without replacement, which are laid out as their input. Draws that make
//! a new tensor of given parameters (`bernoulli(p)`, `poisson`, gamma) go in logical order.
//!
//! The large form of [`Stream::normal`] belongs to contiguous tensors alone: dense but permuted ones, and ones with
//! gaps, take [`Stream::normal_small`] at any size.

#[macro_use]
mod wide;

mod bernoulli;
mod box_muller;
mod continuous;
mod discrete;
mod element;
mod gamma;
mod generator;
mod implicit;
mod integer;
mod multinomial;
mod normal;
mod select;
mod twister;
mod uniform;

pub use element::{Element, Real};
pub use generator::{DEFAULT_SEED, Generator, STATE_BYTES, Stream, default_generator, manual_seed};
pub(crate) use implicit::{dirichlet_grad, gamma_grad};
