//! Datasets, samplers and loaders.
//!
//! ```
//! # use flambeau_cpu as _;
//! use flambeau_data::{DataLoader, TensorDataset};
//! use flambeau_engine::{Tensor, base::{Device, Result}};
//!
//! # fn main() -> Result<()> {
//! let x = Tensor::arange(0, 10, 1, None, Device::CPU)?;
//! let data = TensorDataset::new(vec![x])?;
//! let loader = DataLoader::new(data, 4).shuffled();
//! let sizes: Vec<usize> = loader.iter()?.map(|batch| Ok(batch?[0].numel())).collect::<Result<_>>()?;
//! assert_eq!(sizes, [4, 4, 2]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod collate;
mod dataset;
mod loader;

pub use collate::Collate;
pub use dataset::{Dataset, Subset, TensorDataset, random_split};
pub use loader::{Batches, DataLoader};
