//! Batches, in order or at random.

use crate::collate::Collate;
use crate::dataset::{Dataset, permutation};
use flambeau_engine::base::{Error, Result};
use flambeau_engine::random::{Generator, default_generator};

/// Goes through a dataset in batches, with PyTorch's draws.
#[derive(Clone, Debug)]
pub struct DataLoader<D> {
    data: D,
    batch_size: usize,
    shuffle: bool,
    drop_last: bool,
    generator: Option<Generator>,
}

impl<D: Dataset> DataLoader<D> {
    /// Batches of `batch_size` samples in order; the last one may be shorter.
    pub fn new(data: D, batch_size: usize) -> DataLoader<D> {
        DataLoader { data, batch_size, shuffle: false, drop_last: false, generator: None }
    }

    /// In a new random order in each pass.
    pub fn shuffled(mut self) -> DataLoader<D> {
        self.shuffle = true;
        self
    }

    /// Without a last batch that is shorter.
    pub fn drop_last(mut self) -> DataLoader<D> {
        self.drop_last = true;
        self
    }

    /// With draws from this generator.
    pub fn generator(mut self, generator: Generator) -> DataLoader<D> {
        self.generator = Some(generator);
        self
    }

    /// How many batches a pass has.
    pub fn len(&self) -> usize {
        let n = self.data.len();
        if self.batch_size == 0 {
            0
        } else if self.drop_last {
            n / self.batch_size
        } else {
            n.div_ceil(self.batch_size)
        }
    }

    /// Whether a pass has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a pass. `ValueError` for a batch size of 0.
    ///
    /// Draws as PyTorch's loader does: one number for each pass, then, where the order is random, one
    /// to seed the permutation's own generator (unless a generator was given, which then draws it).
    pub fn iter(&self) -> Result<Batches<'_, D>> {
        if self.batch_size == 0 {
            return Err(Error::value("DataLoader: batch_size should be a positive integer value, but got batch_size=0"));
        }
        let source = self.generator.clone().unwrap_or_else(|| default_generator().clone());
        let draw = |g: &Generator| {
            let mut number = [0i64];
            g.lock().random(&mut number);
            number[0]
        };
        draw(&source);
        let n = self.data.len();
        let order = match (self.shuffle, &self.generator) {
            (false, _) => (0..n).collect(),
            (true, Some(g)) => permutation(n, g)?,
            (true, None) => permutation(n, &Generator::with_seed(draw(&source) as u64))?,
        };
        Ok(Batches { loader: self, order, next: 0 })
    }
}

/// One pass over a dataset.
pub struct Batches<'a, D> {
    loader: &'a DataLoader<D>,
    order: Vec<usize>,
    next: usize,
}

impl<D: Dataset> Iterator for Batches<'_, D>
where
    D::Item: Collate,
{
    type Item = Result<<D::Item as Collate>::Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = (self.next + self.loader.batch_size).min(self.order.len());
        let indices = &self.order[self.next..end];
        if indices.is_empty() || (self.loader.drop_last && indices.len() < self.loader.batch_size) {
            return None;
        }
        self.next = end;
        let samples: Result<Vec<D::Item>> = indices.iter().map(|&i| self.loader.data.get(i)).collect();
        Some(samples.and_then(Collate::collate))
    }
}
