//! Convolutions over one, two and three dimensions.

use crate::module::{Module, Parameter, Path, Slot};
use crate::{Layer, init};
use flambeau_engine::Tensor;
use flambeau_engine::base::{DType, Device, Error, Result};
use flambeau_engine::ops::nn::ConvOptions;

/// A convolution over `D` dimensions: each output element is the sum of a window of the input times the weight, plus
/// the bias. Input `[batch, inputs, ...]` or without the batch.
///
/// The weight is `[outputs, inputs / groups, kernel...]` and the bias `[outputs]`, both float32, drawn as PyTorch draws
/// them.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::{Tensor, base::{DType, Device}, ops::nn::ConvOptions};
/// use flambeau_nn::{Conv2d, Layer, Module};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let layer = Conv2d::new(3, 8, &[3], ConvOptions::new().padding(&[1]))?;
/// let y = layer.forward(&Tensor::ones(&[4, 3, 10, 12], DType::F32, Device::CPU)?)?;
/// assert_eq!(y.shape(), [4, 8, 10, 12]);
/// assert_eq!(layer.parameter_count(), 8 * 3 * 9 + 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Conv<const D: usize> {
    /// `[outputs, inputs / groups, kernel...]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
    /// How the windows lie.
    pub options: ConvOptions,
}

/// A transposed convolution over `D` dimensions: what [`Conv`] does to gradients of its input. Input
/// `[batch, inputs, ...]` or without the batch.
///
/// The weight is `[inputs, outputs / groups, kernel...]` and the bias `[outputs]`, both float32, drawn as PyTorch draws
/// them.
///
/// ```
/// # use flambeau_cpu as _;
/// use flambeau_engine::{Tensor, base::{DType, Device}, ops::nn::ConvOptions};
/// use flambeau_nn::{ConvTranspose2d, Layer};
/// # fn main() -> flambeau_engine::base::Result<()> {
/// let doubling = ConvTranspose2d::new(8, 3, &[2], ConvOptions::new().stride(&[2]))?;
/// let y = doubling.forward(&Tensor::ones(&[1, 8, 5, 6], DType::F32, Device::CPU)?)?;
/// assert_eq!(y.shape(), [1, 3, 10, 12]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConvTranspose<const D: usize> {
    /// `[inputs, outputs / groups, kernel...]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
    /// How the windows lie.
    pub options: ConvOptions,
}

/// A convolution over `[batch, channels, length]`.
pub type Conv1d = Conv<1>;
/// A convolution over `[batch, channels, height, width]`.
pub type Conv2d = Conv<2>;
/// A convolution over `[batch, channels, depth, height, width]`.
pub type Conv3d = Conv<3>;
/// A transposed convolution over `[batch, channels, length]`.
pub type ConvTranspose1d = ConvTranspose<1>;
/// A transposed convolution over `[batch, channels, height, width]`.
pub type ConvTranspose2d = ConvTranspose<2>;
/// A transposed convolution over `[batch, channels, depth, height, width]`.
pub type ConvTranspose3d = ConvTranspose<3>;

/// Weight and bias of a layer whose weight has these two sizes before the kernel's.
fn parameters<const D: usize>(rows: usize, columns: usize, outputs: usize, kernel: &[usize]) -> Result<(Parameter, Parameter)> {
    let field: Vec<usize> = match kernel {
        [one] => vec![*one; D],
        list if list.len() == D => list.to_vec(),
        list => return Err(Error::value(format!("Conv: a kernel of one or {D} sizes is needed, got {list:?}"))),
    };
    let sizes: Vec<usize> = [rows, columns].into_iter().chain(field).collect();
    let weight = Tensor::empty(&sizes, DType::F32, Device::CPU)?;
    init::kaiming_uniform(&weight, 5f64.sqrt())?;
    let bias = Tensor::empty(&[outputs], DType::F32, Device::CPU)?;
    let (inputs, _) = init::fans(&weight)?;
    if inputs > 0 {
        let bound = 1.0 / (inputs as f64).sqrt();
        init::uniform(&bias, -bound, bound)?;
    }
    Ok((Parameter::new(weight)?, Parameter::new(bias)?))
}

/// Channels of one group. `ValueError` where they do not divide.
fn share(channels: usize, groups: i64, what: &str) -> Result<usize> {
    match usize::try_from(groups) {
        Ok(groups) if groups > 0 && channels.is_multiple_of(groups) => Ok(channels / groups),
        _ => Err(Error::value(format!("Conv: {what} must be divisible by groups, got {channels} and {groups}"))),
    }
}

impl<const D: usize> Conv<D> {
    /// With a bias. A kernel of one size has it in all dimensions.
    pub fn new(inputs: usize, outputs: usize, kernel: &[usize], options: ConvOptions) -> Result<Conv<D>> {
        share(outputs, options.groups, "out_channels")?;
        let (weight, bias) = parameters::<D>(outputs, share(inputs, options.groups, "in_channels")?, outputs, kernel)?;
        Ok(Conv { weight, bias: Some(bias), options })
    }

    /// The layer without its bias.
    pub fn without_bias(self) -> Conv<D> {
        Conv { bias: None, ..self }
    }
}

impl<const D: usize> ConvTranspose<D> {
    /// With a bias. A kernel of one size has it in all dimensions.
    pub fn new(inputs: usize, outputs: usize, kernel: &[usize], options: ConvOptions) -> Result<ConvTranspose<D>> {
        share(inputs, options.groups, "in_channels")?;
        let (weight, bias) = parameters::<D>(inputs, share(outputs, options.groups, "out_channels")?, outputs, kernel)?;
        Ok(ConvTranspose { weight, bias: Some(bias), options })
    }

    /// The layer without its bias.
    pub fn without_bias(self) -> ConvTranspose<D> {
        ConvTranspose { bias: None, ..self }
    }
}

impl<const D: usize> Module for Conv<D> {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
        path.enter("bias", |path| self.bias.walk(path, visit));
    }
}

impl<const D: usize> Module for ConvTranspose<D> {
    fn walk(&self, path: &mut Path, visit: &mut dyn FnMut(&str, Slot<'_>)) {
        path.enter("weight", |path| self.weight.walk(path, visit));
        path.enter("bias", |path| self.bias.walk(path, visit));
    }
}

impl<const D: usize> Layer for Conv<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_deref();
        match D {
            1 => x.conv1d(&self.weight, bias, &self.options),
            2 => x.conv2d(&self.weight, bias, &self.options),
            _ => x.conv3d(&self.weight, bias, &self.options),
        }
    }
}

impl<const D: usize> Layer for ConvTranspose<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_deref();
        match D {
            1 => x.conv_transpose1d(&self.weight, bias, &self.options),
            2 => x.conv_transpose2d(&self.weight, bias, &self.options),
            _ => x.conv_transpose3d(&self.weight, bias, &self.options),
        }
    }
}
