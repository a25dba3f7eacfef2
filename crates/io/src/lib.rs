//! Files and exchange formats.
//!
//! - [`pickle`]: Python's pickles as data; nothing that a file names is ever run.
//! - [`pt`]: PyTorch's `.pt` files.
#![forbid(unsafe_op_in_unsafe_fn)]

mod error;
pub mod pickle;
pub mod pt;

pub use error::{Error, Result};
