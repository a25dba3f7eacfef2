//! Elements named by integers, ranges, masks and index tensors.

mod address;
mod embedding;
mod embedding_bag;
mod gathered;
mod items;
mod mask;
mod reduce;
mod rows;
mod scatter;
mod search;

pub(crate) use address::place;
pub use address::{Address, Pick, Place};
pub use embedding::{Embedding, bincount, embedding, one_hot};
pub use embedding_bag::{Bag, BagOptions, Bagged, embedding_bag};
pub use items::IndexItem;
pub use mask::NonZero;
pub use search::{SearchSorted, searchsorted};

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] =
    &[rows::OPS, scatter::OPS, mask::OPS, embedding::OPS, embedding_bag::OPS, search::OPS, gathered::OPS];
