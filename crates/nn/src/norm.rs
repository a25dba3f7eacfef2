//! Normalisation.

use crate::Layer;
use crate::module::{Module, Parameter, Path, Slot};
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, Result};

/// Each vector brought to mean 0 and variance 1, then scaled and moved (Ba et al., 2016).
#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// Scale, `[width]`.
    pub weight: Parameter,
    /// Shift, `[width]`.
    pub bias: Parameter,
    eps: f64,
}

impl LayerNorm {
    /// Over vectors of `width` numbers, with PyTorch's epsilon of 1e-5.
    pub fn new(width: usize) -> Result<LayerNorm> {
        let weight = Parameter::new(Tensor::ones(&[width], DType::F32, Device::CPU)?)?;
        let bias = Parameter::new(Tensor::zeros(&[width], DType::F32, Device::CPU)?)?;
        Ok(LayerNorm { weight, bias, eps: 1e-5 })
    }
}

impl Module for LayerNorm {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
        path.enter("bias", |path| self.bias.walk(path, visit));
    }
}

impl Layer for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.layer_norm(&[self.weight.numel() as i64], Some(&self.weight), Some(&self.bias), self.eps)
    }
}
