//! Scans: each result is what the elements up to its place give.

use super::Op;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[];
