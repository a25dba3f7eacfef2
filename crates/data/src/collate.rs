//! From samples to a batch.

use flambeau_engine::Tensor;
use flambeau_engine::base::{Error, Result};
use flambeau_engine::ops::join::stack;

/// Samples that can be put together: tensors are stacked, numbers become a tensor, pairs and lists go part by part.
pub trait Collate: Sized {
    /// What a batch of them is.
    type Batch;

    /// Puts samples together. `RuntimeError` where their shapes differ.
    fn collate(samples: Vec<Self>) -> Result<Self::Batch>;
}

impl Collate for Tensor {
    type Batch = Tensor;

    fn collate(samples: Vec<Tensor>) -> Result<Tensor> {
        stack(&samples.iter().collect::<Vec<_>>(), 0)
    }
}

impl Collate for Vec<Tensor> {
    type Batch = Vec<Tensor>;

    fn collate(samples: Vec<Vec<Tensor>>) -> Result<Vec<Tensor>> {
        let parts = samples.first().map_or(0, |s| s.len());
        if let Some(other) = samples.iter().find(|s| s.len() != parts) {
            return Err(Error::runtime(format!(
                "collate: each element in list of batch should be of equal size, got {parts} and {}",
                other.len()
            )));
        }
        (0..parts).map(|i| Tensor::collate(samples.iter().map(|s| s[i].clone()).collect())).collect()
    }
}

impl<A: Collate, B: Collate> Collate for (A, B) {
    type Batch = (A::Batch, B::Batch);

    fn collate(samples: Vec<(A, B)>) -> Result<Self::Batch> {
        let (a, b) = samples.into_iter().unzip();
        Ok((A::collate(a)?, B::collate(b)?))
    }
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Collate for $t {
            type Batch = Tensor;

            fn collate(samples: Vec<$t>) -> Result<Tensor> {
                Tensor::from_slice(&samples, &[samples.len()])
            }
        }
    )*};
}
number!(f32, f64, i64);
