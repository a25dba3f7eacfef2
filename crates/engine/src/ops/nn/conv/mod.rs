//! Convolutions and transposed convolutions over one to three dimensions.

mod backward;
mod primitive;
mod rows;

use crate::Tensor;
use flambeau_base::{DType, Dims, Error, MemoryFormat, Result, show};
use smallvec::{SmallVec, smallvec};

use primitive::apply;
pub use primitive::{Convolution, Kind};
pub(super) use rows::OPS;

/// How far the input is thought to reach beyond its ends, with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// So many zeros at both ends of each dimension; one number stands for all dimensions.
    By(SmallVec<[i64; 6]>),
    /// As many as make the output as large as the input; where that is odd, the last one at the end.
    Same,
    /// None.
    Valid,
}

/// How a window goes over the input. A list of one number stands for all dimensions.
///
/// ```
/// use flambeau_engine::ops::nn::ConvOptions;
/// let halving = ConvOptions::new().stride(&[2]).padding(&[1]);
/// assert_eq!(halving.groups, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// Steps from window to window.
    pub stride: SmallVec<[i64; 6]>,
    /// Zeros around the input.
    pub padding: Padding,
    /// Steps from element to element of a window.
    pub dilation: SmallVec<[i64; 6]>,
    /// Elements added to the end of a transposed convolution's result.
    pub output_padding: SmallVec<[i64; 6]>,
    /// Parts into which the channels are cut; each part of the output sees one part of the input.
    pub groups: i64,
}

impl Default for ConvOptions {
    fn default() -> ConvOptions {
        let of = |n: i64| smallvec![n];
        ConvOptions { stride: of(1), padding: Padding::By(of(0)), dilation: of(1), output_padding: of(0), groups: 1 }
    }
}

impl ConvOptions {
    /// Windows side by side, without padding, dilation or groups.
    pub fn new() -> ConvOptions {
        ConvOptions::default()
    }

    /// Steps from window to window.
    pub fn stride(mut self, steps: &[i64]) -> ConvOptions {
        self.stride = SmallVec::from_slice(steps);
        self
    }

    /// Zeros at both ends of the input.
    pub fn padding(mut self, zeros: &[i64]) -> ConvOptions {
        self.padding = Padding::By(SmallVec::from_slice(zeros));
        self
    }

    /// Zeros such that the output is as large as the input.
    pub fn same(mut self) -> ConvOptions {
        self.padding = Padding::Same;
        self
    }

    /// Steps from element to element of a window.
    pub fn dilation(mut self, steps: &[i64]) -> ConvOptions {
        self.dilation = SmallVec::from_slice(steps);
        self
    }

    /// Elements added to the end of a transposed convolution's result.
    pub fn output_padding(mut self, elements: &[i64]) -> ConvOptions {
        self.output_padding = SmallVec::from_slice(elements);
        self
    }

    /// Parts into which the channels are cut.
    pub fn groups(mut self, groups: i64) -> ConvOptions {
        self.groups = groups;
        self
    }
}

/// The options of a call, checked and with a number for each dimension.
struct Checked {
    stride: Dims,
    /// At the beginning; for [`Padding::Same`] less than at the end where the sum is odd.
    padding: Dims,
    /// At both ends together.
    both: Dims,
    dilation: Dims,
    output_padding: Dims,
    groups: usize,
}

/// A number for each of `n` dimensions, none below `least`.
fn each(op: &str, what: &str, given: &[i64], n: usize, least: i64) -> Result<Dims> {
    let all: SmallVec<[i64; 6]> = match given {
        [one] => smallvec![*one; n],
        list => SmallVec::from_slice(list),
    };
    if all.len() != n {
        return Err(Error::runtime(format!(
            "{op}: expected {what} to be a single integer value or a list of {n} values to match the convolution dimensions, but got {what}={given:?}"
        )));
    }
    if let Some(wrong) = all.iter().find(|&&v| v < least) {
        let kind = if least > 0 { "non-positive" } else { "negative" };
        return Err(Error::runtime(format!("{op}: {kind} {what} is not supported, got {wrong} in {what}={given:?}")));
    }
    Ok(all.iter().map(|&v| v as usize).collect())
}

/// The arguments of one call, for checks and their messages.
struct Call<'a> {
    op: &'a str,
    transposed: bool,
    /// With a dimension for the batch.
    x: &'a Tensor,
    w: &'a Tensor,
    bias: Option<&'a Tensor>,
}

impl Call<'_> {
    fn wrong<T>(&self, why: String) -> Result<T> {
        Err(Error::runtime(format!("{}: {why}", self.op)))
    }

    /// Checks what does not depend on sizes of dimensions beyond channels.
    fn options(&self, options: &ConvOptions) -> Result<Checked> {
        let (op, n) = (self.op, self.w.ndim() - 2);
        if options.groups <= 0 {
            return self.wrong(format!("non-positive groups is not supported, got groups={}", options.groups));
        }
        let stride = each(op, "stride", &options.stride, n, 1)?;
        let dilation = each(op, "dilation", &options.dilation, n, 1)?;
        let output_padding = each(op, "output_padding", &options.output_padding, n, 0)?;
        let spans = |d: usize| dilation[d] * self.w.shape()[2 + d].saturating_sub(1);
        let (padding, both): (Dims, Dims) = match &options.padding {
            Padding::By(zeros) => {
                let zeros = each(op, "padding", zeros, n, 0)?;
                (zeros.clone(), zeros.iter().map(|&p| 2 * p).collect())
            }
            Padding::Valid => (smallvec![0; n], smallvec![0; n]),
            Padding::Same if stride.iter().any(|&s| s != 1) => {
                return self.wrong(format!("padding='same' is not supported for strided convolutions, got stride={:?}", options.stride));
            }
            Padding::Same => ((0..n).map(|d| spans(d) / 2).collect(), (0..n).map(spans).collect()),
        };
        Ok(Checked { stride, padding, both, dilation, output_padding, groups: options.groups as usize })
    }

    fn check_dtypes(&self) -> Result<()> {
        for (t, what) in [(Some(self.w), "weight"), (self.bias, "bias")] {
            if let Some(t) = t
                && t.dtype() != self.x.dtype()
            {
                return self.wrong(format!(
                    "Input type ({}) and {what} type ({}) should be the same; convert one of them with .to()",
                    self.x.dtype(),
                    t.dtype()
                ));
            }
        }
        if self.x.dtype() == DType::Bool {
            return Err(Error::not_implemented(format!("{}: not implemented for bool; convert to another dtype", self.op)));
        }
        Ok(())
    }

    /// Checks channels, groups and bias; gives the number of output channels.
    fn check_channels(&self, groups: usize) -> Result<usize> {
        let (x, w) = (self.x.shape(), self.w.shape());
        let given = format!("Given groups={groups}, weight of size {}", show(w));
        if w[0] < groups {
            return self.wrong(format!(
                "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {} instead",
                show(w)
            ));
        }
        if w[0] % groups != 0 {
            return self.wrong(format!(
                "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {} instead",
                show(w)
            ));
        }
        let (wanted, out) = if self.transposed { (w[0], w[1] * groups) } else { (w[1] * groups, w[0]) };
        if x[1] != wanted {
            return self.wrong(format!("{given}, expected input{} to have {wanted} channels, but got {} channels instead", show(x), x[1]));
        }
        if let Some(bias) = self.bias
            && bias.shape() != [out]
        {
            return self.wrong(format!(
                "{given}, expected bias to be 1-dimensional with {out} elements, but got bias of size {} instead",
                show(bias.shape())
            ));
        }
        Ok(out)
    }

    /// Sizes of the result, batch and channels included.
    fn result_sizes(&self, c: &Checked, channels: usize) -> Result<Dims> {
        let (x, w) = (self.x.shape(), self.w.shape());
        let mut sizes: Dims = smallvec![x[0], channels];
        let kernel = &w[2..];
        if kernel.contains(&0) {
            return self.wrong(format!("Expected a kernel of at least one element in each dimension, but got weight of size {}", show(w)));
        }
        for d in 0..kernel.len() {
            let (n, span) = (x[2 + d], c.dilation[d] * (kernel[d] - 1) + 1);
            if self.transposed {
                if c.output_padding[d] >= c.stride[d] && c.output_padding[d] >= c.dilation[d] {
                    return self.wrong(format!(
                        "output padding must be smaller than either stride or dilation, but got output_padding: {:?} stride: {:?} dilation: {:?}",
                        &c.output_padding[..],
                        &c.stride[..],
                        &c.dilation[..]
                    ));
                }
                let full = (n.max(1) - 1) * c.stride[d] + span + c.output_padding[d];
                if full <= c.both[d] {
                    return self.wrong(format!(
                        "Given input size per channel: {}. The output would have {full} - {} elements in dimension {d}. Output size is too small",
                        show(&x[2..]),
                        c.both[d]
                    ));
                }
                sizes.push(full - c.both[d]);
            } else {
                if n + c.both[d] < span {
                    let padded: Dims = x[2..].iter().zip(&c.both).map(|(n, p)| n + p).collect();
                    return self.wrong(format!(
                        "Calculated padded input size per channel: {}. Kernel size: {}. Kernel size can't be greater than actual input size",
                        show(&padded),
                        show(kernel)
                    ));
                }
                sizes.push((n + c.both[d] - span) / c.stride[d] + 1);
            }
        }
        if x[2..].contains(&0) && x[0] != 0 && x[1] != 0 {
            return self.wrong(format!("Only zero batch or zero channel inputs are supported, but got input shape: {}", show(x)));
        }
        Ok(sizes)
    }

    /// The order of dimensions in memory that the result has: channels last where input or weight have it so.
    fn format(&self) -> MemoryFormat {
        let last = match self.w.ndim() {
            4 => MemoryFormat::ChannelsLast,
            5 if self.x.dtype() != DType::F64 => MemoryFormat::ChannelsLast3d,
            _ => return MemoryFormat::Contiguous,
        };
        if [self.x, self.w].iter().any(|t| t.layout().suggested_format() == last) { last } else { MemoryFormat::Contiguous }
    }

    fn run(&self, options: &ConvOptions) -> Result<Tensor> {
        let c = self.options(options)?;
        self.check_dtypes()?;
        let channels = self.check_channels(c.groups)?;
        let op = Convolution {
            kind: if self.transposed { Kind::Input } else { Kind::Output },
            sizes: self.result_sizes(&c, channels)?,
            format: self.format(),
            stride: c.stride,
            padding: c.padding,
            dilation: c.dilation,
            groups: c.groups,
        };
        if self.x.dtype().is_complex() {
            return complex(&op, self.x, self.w, self.bias);
        }
        apply(&op, self.x, self.w, self.bias)
    }
}

/// A convolution of complex numbers from four of their parts.
fn complex(op: &Convolution, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let [(xr, xi), (wr, wi)] = [(x.real()?, x.imag()?), (w.real()?, w.imag()?)];
    let (br, bi) = (bias.map(Tensor::real).transpose()?, bias.map(Tensor::imag).transpose()?);
    let real = apply(op, &xr, &wr, br.as_ref())?.sub(&apply(op, &xi, &wi, None)?)?;
    let imag = apply(op, &xr, &wi, bi.as_ref())?.add(&apply(op, &xi, &wr, None)?)?;
    crate::ops::join::stack(&[&real, &imag], -1)?.view_as_complex()
}

/// A convolution over `n` dimensions, transposed or not, of an input with or without a batch.
fn convolve(op: &str, n: usize, transposed: bool, x: &Tensor, w: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<Tensor> {
    if x.ndim() != n + 1 && x.ndim() != n + 2 {
        return Err(Error::runtime(format!(
            "{op}: Expected {}D (unbatched) or {}D (batched) input to {op}, but got input of size: {}",
            n + 1,
            n + 2,
            show(x.shape())
        )));
    }
    if w.ndim() != n + 2 {
        return Err(Error::runtime(format!(
            "{op}: Expected a weight of {} dimensions (output channels, input channels / groups, kernel), but got weight of size: {}",
            n + 2,
            show(w.shape())
        )));
    }
    if x.ndim() == n + 2 {
        return Call { op, transposed, x, w, bias }.run(options);
    }
    let y = Call { op, transposed, x: &x.unsqueeze(0)?, w, bias }.run(options)?;
    y.squeeze(Some(&[0]))
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident: $n:literal, $transposed:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            pub fn $name(&self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<Tensor> {
                convolve(stringify!($name), $n, $transposed, self, weight, bias, options)
            }
        )*}
    };
}

methods! {
    /// Convolution (in fact correlation) over one dimension: input `[batch, in, length]` or `[in, length]`, weight
    /// `[out, in / groups, kernel]`, bias `[out]`. `RuntimeError` where shapes, dtypes or options do not fit.
    conv1d: 1, false;
    /// Convolution (in fact correlation) over two dimensions: input `[batch, in, height, width]` or without the batch,
    /// weight `[out, in / groups, kernel height, kernel width]`, bias `[out]`. A result of a channels-last input or weight
    /// is channels-last. `RuntimeError` where shapes, dtypes or options do not fit.
    ///
    /// ```
    /// use flambeau_engine::{Tensor, base::Result, ops::nn::ConvOptions};
    /// # fn example() -> Result<()> {
    /// let image = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// let weight = Tensor::from_slice(&[1.0f32, 1.0, 1.0, 1.0], &[1, 1, 2, 2])?;
    /// let sums = image.conv2d(&weight, None, &ConvOptions::new().padding(&[1]))?;
    /// assert_eq!(sums.shape(), [1, 1, 3, 3]);
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0, 10.0, 6.0, 3.0, 7.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    conv2d: 2, false;
    /// Convolution (in fact correlation) over three dimensions: input `[batch, in, depth, height, width]` or without the
    /// batch, weight `[out, in / groups, kernel...]`, bias `[out]`. `RuntimeError` where shapes, dtypes or options do not fit.
    conv3d: 3, false;
    /// Transposed convolution over one dimension, the gradient of [`Tensor::conv1d`] with regard to its input: input
    /// `[batch, in, length]` or `[in, length]`, weight `[in, out / groups, kernel]`, bias `[out]`. `RuntimeError` where
    /// shapes, dtypes or options do not fit.
    conv_transpose1d: 1, true;
    /// Transposed convolution over two dimensions, the gradient of [`Tensor::conv2d`] with regard to its input; weight
    /// `[in, out / groups, kernel...]`. `RuntimeError` where shapes, dtypes or options do not fit.
    conv_transpose2d: 2, true;
    /// Transposed convolution over three dimensions, the gradient of [`Tensor::conv3d`] with regard to its input; weight
    /// `[in, out / groups, kernel...]`. `RuntimeError` where shapes, dtypes or options do not fit.
    conv_transpose3d: 3, true;
}
