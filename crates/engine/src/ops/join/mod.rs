//! Tensors put together.

mod grid;
mod stack;

pub use grid::{block_diag, meshgrid};
pub use stack::{Cat, Stack, cat, stack};

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] = &[stack::OPS, grid::OPS];
