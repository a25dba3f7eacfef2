//! `.pt` files.

mod hostile;
mod read;
mod show;
mod write;
