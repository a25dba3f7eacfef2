//! Normalisation.

use crate::Layer;
use crate::module::{Buffer, Mode, Module, Parameter, Path, Slot};
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

/// Weight and bias of a norm, one for each channel.
#[derive(Clone, Debug)]
struct Affine {
    weight: Parameter,
    bias: Parameter,
}

impl Affine {
    fn new(channels: usize) -> Result<Affine> {
        Ok(Affine {
            weight: Parameter::new(Tensor::ones(&[channels], DType::F32, Device::CPU)?)?,
            bias: Parameter::new(Tensor::zeros(&[channels], DType::F32, Device::CPU)?)?,
        })
    }

    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
        path.enter("bias", |path| self.bias.walk(path, visit));
    }
}

/// Channels (dimension 1) brought to mean 0 and variance 1 over the batch, then scaled and moved (Ioffe and Szegedy, 2015).
///
/// In training the statistics are those of the batch, and the running ones are moved towards them; else they are the
/// running ones.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    affine: Affine,
    running_mean: Buffer,
    running_var: Buffer,
    batches: Buffer,
    eps: f64,
    momentum: Option<f64>,
    mode: Mode,
}

impl BatchNorm {
    /// For so many channels, with PyTorch's epsilon of 1e-5 and momentum of 0.1.
    pub fn new(channels: usize) -> Result<BatchNorm> {
        BatchNorm::with(channels, 1e-5, Some(0.1))
    }

    /// With another epsilon and momentum; without momentum the running statistics are means over all batches.
    pub fn with(channels: usize, eps: f64, momentum: Option<f64>) -> Result<BatchNorm> {
        Ok(BatchNorm {
            affine: Affine::new(channels)?,
            running_mean: Buffer(Tensor::zeros(&[channels], DType::F32, Device::CPU)?),
            running_var: Buffer(Tensor::ones(&[channels], DType::F32, Device::CPU)?),
            batches: Buffer(Tensor::zeros(&[], DType::I64, Device::CPU)?),
            eps,
            momentum,
            mode: Mode::default(),
        })
    }
}

impl Module for BatchNorm {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        self.affine.walk(path, visit);
        path.enter("running_mean", |path| visit(path.as_str(), Slot::Buffer(&self.running_mean)));
        path.enter("running_var", |path| visit(path.as_str(), Slot::Buffer(&self.running_var)));
        path.enter("num_batches_tracked", |path| visit(path.as_str(), Slot::Buffer(&self.batches)));
        self.mode.walk(path, visit);
    }
}

impl Layer for BatchNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let training = self.mode.is_training();
        let mut momentum = self.momentum.unwrap_or(0.0);
        if training {
            self.batches.add_(1)?;
            if self.momentum.is_none() {
                momentum = 1.0 / self.batches.item()?.to_f64();
            }
        }
        let (weight, bias) = (Some(self.affine.weight.tensor()), Some(self.affine.bias.tensor()));
        x.batch_norm(weight, bias, Some(&self.running_mean), Some(&self.running_var), training, momentum, self.eps)
    }
}

/// [`BatchNorm`] of `[batch, channels]` or `[batch, channels, length]`.
pub type BatchNorm1d = BatchNorm;
/// [`BatchNorm`] of `[batch, channels, height, width]`.
pub type BatchNorm2d = BatchNorm;
/// [`BatchNorm`] of `[batch, channels, depth, height, width]`.
pub type BatchNorm3d = BatchNorm;

/// Groups of channels (dimension 1), each with what is behind them brought to mean 0 and variance 1 (Wu and He, 2018).
#[derive(Clone, Debug)]
pub struct GroupNorm {
    affine: Affine,
    groups: usize,
    eps: f64,
}

impl GroupNorm {
    /// For so many groups and channels, with PyTorch's epsilon of 1e-5.
    pub fn new(groups: usize, channels: usize) -> Result<GroupNorm> {
        Ok(GroupNorm { affine: Affine::new(channels)?, groups, eps: 1e-5 })
    }
}

impl Module for GroupNorm {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        self.affine.walk(path, visit);
    }
}

impl Layer for GroupNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.group_norm(self.groups as i64, Some(&self.affine.weight), Some(&self.affine.bias), self.eps)
    }
}

/// Each channel (dimension 1) of each member of the batch brought to mean 0 and variance 1 (Ulyanov et al., 2016); without
/// parameters, as in PyTorch.
#[derive(Clone, Copy, Debug)]
pub struct InstanceNorm {
    eps: f64,
}

impl InstanceNorm {
    /// With PyTorch's epsilon of 1e-5.
    pub fn new() -> InstanceNorm {
        InstanceNorm { eps: 1e-5 }
    }
}

impl Default for InstanceNorm {
    fn default() -> InstanceNorm {
        InstanceNorm::new()
    }
}

impl Module for InstanceNorm {
    fn walk(&self, _: &mut Path, _: &mut dyn FnMut(&str, Slot<'_>)) {}
}

impl Layer for InstanceNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.instance_norm(None, None, None, None, true, 0.1, self.eps)
    }
}

/// Each vector divided by its root mean square, then scaled (Zhang and Sennrich, 2019).
#[derive(Clone, Debug)]
pub struct RmsNorm {
    /// Scale, `[width]`.
    pub weight: Parameter,
    eps: Option<f64>,
}

impl RmsNorm {
    /// Over vectors of `width` numbers; the epsilon is the dtype's.
    pub fn new(width: usize) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: Parameter::new(Tensor::ones(&[width], DType::F32, Device::CPU)?)?, eps: None })
    }

    /// With an epsilon.
    pub fn eps(mut self, eps: f64) -> RmsNorm {
        self.eps = Some(eps);
        self
    }
}

impl Module for RmsNorm {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
    }
}

impl Layer for RmsNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.rms_norm(&[self.weight.numel() as i64], Some(&self.weight), self.eps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_cpu as _;

    #[test]
    fn names_are_those_of_checkpoints() {
        let norm = BatchNorm2d::new(3).unwrap();
        let names: Vec<String> = norm.state_dict().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]);
        assert_eq!(norm.parameter_count(), 6);
    }
}
