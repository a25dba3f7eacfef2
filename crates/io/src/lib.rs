//! Files and exchange formats.
//!
//! - [`pickle`]: Python's pickles as data; nothing that a file names is ever run.
//! - [`pt`]: PyTorch's `.pt` files, as [`Object`]s.
//! - [`safetensors`]: tensors by name, in files that can be mapped.
#![forbid(unsafe_op_in_unsafe_fn)]

mod error;
mod map;
mod object;
pub mod pickle;
pub mod pt;
pub mod safetensors;

pub use error::{Error, Result};
pub use object::{Dict, Items, Object};
