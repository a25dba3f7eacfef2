//! The affine layer.

use crate::module::{Module, Parameter, Path, Slot};
use crate::{Layer, init};
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, Result};

/// `x @ weight.T + bias` over the last dimension.
///
/// The weight is `[outputs, inputs]` and the bias `[outputs]`, both float32, drawn as PyTorch draws them.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::{Tensor, base::{DType, Device}};
/// use flambeau_nn::{Layer, Linear, Module};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let layer = Linear::new(3, 2)?;
/// let y = layer.forward(&Tensor::ones(&[4, 3], DType::F32, Device::CPU)?)?;
/// assert_eq!(y.shape(), [4, 2]);
/// assert_eq!(layer.parameter_count(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[outputs, inputs]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
}

impl Linear {
    /// With a bias.
    pub fn new(inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = weight(inputs, outputs)?;
        let bias = Tensor::empty(&[outputs], DType::F32, Device::CPU)?;
        if inputs > 0 {
            let bound = 1.0 / (inputs as f64).sqrt();
            init::uniform(&bias, -bound, bound)?;
        }
        Ok(Linear { weight, bias: Some(Parameter::new(bias)?) })
    }

    /// Without a bias.
    pub fn without_bias(inputs: usize, outputs: usize) -> Result<Linear> {
        Ok(Linear { weight: weight(inputs, outputs)?, bias: None })
    }
}

fn weight(inputs: usize, outputs: usize) -> Result<Parameter> {
    let weight = Tensor::empty(&[outputs, inputs], DType::F32, Device::CPU)?;
    init::kaiming_uniform(&weight, 5f64.sqrt())?;
    Parameter::new(weight)
}

impl Module for Linear {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
        path.enter("bias", |path| self.bias.walk(path, visit));
    }
}

impl Layer for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.linear(&self.weight, self.bias.as_deref())
    }
}
