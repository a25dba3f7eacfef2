//! `.pt` files.

mod backend;
mod hostile;
mod objects;
mod read;
mod show;
mod write;
