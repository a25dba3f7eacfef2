//! Things that can be asked for by number.

use flambeau_engine::Tensor;
use flambeau_engine::base::{Error, Result};
use flambeau_engine::random::{Generator, default_generator};
use std::sync::Arc;

/// Samples by number.
pub trait Dataset {
    /// A sample.
    type Item;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// Sample `i`.
    fn get(&self, i: usize) -> Result<Self::Item>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rows of tensors: sample `i` is row `i` of each.
#[derive(Clone, Debug)]
pub struct TensorDataset(Vec<Tensor>);

impl TensorDataset {
    /// `ValueError` unless all tensors have as many rows.
    pub fn new(tensors: Vec<Tensor>) -> Result<TensorDataset> {
        let rows: Vec<Option<usize>> = tensors.iter().map(|t| t.shape().first().copied()).collect();
        if rows.is_empty() || rows.iter().any(|r| r.is_none() || *r != rows[0]) {
            return Err(Error::value(format!("TensorDataset: Size mismatch between tensors: rows {rows:?}")));
        }
        Ok(TensorDataset(tensors))
    }
}

impl Dataset for TensorDataset {
    type Item = Vec<Tensor>;

    fn len(&self) -> usize {
        self.0.first().map_or(0, |t| t.shape()[0])
    }

    fn get(&self, i: usize) -> Result<Vec<Tensor>> {
        self.0.iter().map(|t| t.select(0, i as i64)).collect()
    }
}

/// Some samples of a dataset.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    data: Arc<D>,
    /// Which ones, in order.
    pub indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// `IndexError` where a number is not there.
    pub fn new(data: Arc<D>, indices: Vec<usize>) -> Result<Subset<D>> {
        match indices.iter().find(|&&i| i >= data.len()) {
            Some(i) => Err(Error::index(format!("Subset: index {i} is out of range for a dataset of {} samples", data.len()))),
            None => Ok(Subset { data, indices }),
        }
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, i: usize) -> Result<D::Item> {
        let at =
            self.indices.get(i).ok_or_else(|| Error::index(format!("Subset: index {i} is out of range for {} samples", self.len())))?;
        self.data.get(*at)
    }
}

/// Shares a dataset out at random, so many samples to each part, with PyTorch's draws.
///
/// `ValueError` unless the lengths add up to the dataset's.
pub fn random_split<D: Dataset>(data: D, lengths: &[usize], generator: Option<Generator>) -> Result<Vec<Subset<D>>> {
    if lengths.iter().sum::<usize>() != data.len() {
        return Err(Error::value(format!(
            "random_split: Sum of input lengths {lengths:?} does not equal the length of the input dataset {}",
            data.len()
        )));
    }
    let order = permutation(data.len(), &generator.unwrap_or_else(|| default_generator().clone()))?;
    let data = Arc::new(data);
    let mut start = 0;
    lengths
        .iter()
        .map(|&n| {
            start += n;
            Subset::new(data.clone(), order[start - n..start].to_vec())
        })
        .collect()
}

pub(crate) fn permutation(n: usize, generator: &Generator) -> Result<Vec<usize>> {
    let mut order = vec![0i64; n];
    generator.lock().permutation(&mut order)?;
    Ok(order.into_iter().map(|i| i as usize).collect())
}
