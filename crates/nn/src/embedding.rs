//! Rows by number.

use crate::module::{Module, Parameter, Path, Slot};
use crate::{Layer, init};
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, Result};
use flambeau_engine::ops::index::embedding;

/// A table of vectors: integers `[...]` become rows `[..., width]`.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// `[count, width]`, drawn from the standard normal distribution.
    pub weight: Parameter,
}

impl Embedding {
    /// A table of `count` vectors.
    pub fn new(count: usize, width: usize) -> Result<Embedding> {
        let weight = Tensor::empty(&[count, width], DType::F32, Device::CPU)?;
        init::normal(&weight, 0.0, 1.0)?;
        Ok(Embedding { weight: Parameter::new(weight)? })
    }
}

impl Module for Embedding {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
    }
}

impl Layer for Embedding {
    fn forward(&self, numbers: &Tensor) -> Result<Tensor> {
        embedding(&self.weight, numbers, None, false)
    }
}
