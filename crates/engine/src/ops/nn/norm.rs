//! Normalisation over the last dimensions: layer norm, root mean square norm; over groups of channels.

use super::{check_float, into_packed, packed, second_vjp};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads};
use crate::transform::bind;
use flambeau_base::{DType, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `(x - mean) / sqrt(variance + eps) * weight + bias` over the last `axes` dimensions; inputs are `x`, the weight and the bias,
/// where they are there. Further outputs are mean and inverse standard deviation of each row.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    axes: usize,
    eps: f64,
    /// Whether the mean is subtracted.
    centred: bool,
    weight: bool,
    bias: bool,
}

impl Norm {
    fn name(&self) -> &'static str {
        if self.centred { "layer_norm" } else { "rms_norm" }
    }

    /// Number of rows and their length.
    fn sizes(&self, x: &Tensor) -> [usize; 2] {
        let (rows, row) = x.shape().split_at(x.ndim() - self.axes);
        [rows.iter().product(), row.iter().product()]
    }

    fn forward_inputs(&self) -> usize {
        1 + self.weight as usize + self.bias as usize
    }
}

impl Primitive for Norm {
    fn name(&self) -> &'static str {
        Norm::name(self)
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_float(Norm::name(self), x.dtype())?;
        for (t, what) in inputs[1..].iter().zip(if self.weight { ["weight", "bias"] } else { ["bias", ""] }) {
            if t.dtype() != x.dtype() {
                return Err(Error::runtime(format!(
                    "{}: mixed dtype: expect parameter to have scalar type of {}, but {what} is {}; convert one of them with .to()",
                    Norm::name(self),
                    x.dtype(),
                    t.dtype()
                )));
            }
        }
        let kept = &x.shape()[..x.ndim() - self.axes];
        let row = OutSpec { layout: Layout::contiguous(kept)?, dtype: x.dtype().accumulator() };
        Ok(smallvec![super::like(x)?, row.clone(), row])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        into_packed(&outputs[0], |out| {
            let call = layers::Norm {
                dtype: out.dtype(),
                sizes: self.sizes(&dense[0]),
                centred: self.centred,
                eps: self.eps,
                input: dense[0].data_ptr()?,
                weight: optional(&dense, self.weight, 1)?,
                bias: optional(&dense, self.bias, 1 + self.weight as usize)?,
                out: out.data_ptr_mut()?,
                mean: outputs[1].data_ptr_mut()?,
                rstd: outputs[2].data_ptr_mut()?,
            };
            // SAFETY: all are contiguous; `infer` and the callers checked shapes and dtypes.
            unsafe { backend(out.device())?.norm(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        let needs = [cx.needs(0), self.weight && cx.needs(1), self.bias && cx.needs(1 + self.weight as usize)];
        let mut inputs: SmallVec<[Tensor; 5]> = smallvec![g, cx.input(0)?];
        if self.weight {
            inputs.push(cx.input(1)?);
        }
        inputs.extend([cx.output(1)?.alias(), cx.output(2)?.alias()]);
        let inputs: SmallVec<[&Tensor; 5]> = inputs.iter().collect();
        let mut found = bind(&NormBackward { norm: *self, needs }, &inputs)?.into_iter();
        let mut out: Grads = smallvec![if needs[0] { found.next() } else { None }];
        if self.weight {
            out.push(if needs[1] { found.next() } else { None });
        }
        if self.bias {
            out.push(if needs[2] { found.next() } else { None });
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::both(if self.weight { 0b11 } else { 0b1 }, 0b110)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn optional(all: &[Tensor], there: bool, i: usize) -> Result<*const u8> {
    if there { Ok(all[i].data_ptr()?.cast_const()) } else { Ok(std::ptr::null()) }
}

/// The composite form of layer norm (`centred`) and root mean square norm: inputs are `x`, weight and bias, where they are there.
pub fn norm_composite(all: &[Tensor], axes: usize, eps: f64, centred: bool, weight: bool, bias: bool) -> Result<Tensor> {
    let x = &all[0];
    let dims: SmallVec<[i64; 6]> = (1..=axes as i64).map(|d| -d).collect();
    let shifted = if centred { x.sub(&x.mean_dims(Some(&dims), true, None)?)? } else { x.clone() };
    let variance = shifted.square()?.mean_dims(Some(&dims), true, None)?;
    let mut y = shifted.mul(&variance.add(eps)?.rsqrt()?)?;
    if weight {
        y = y.mul(&all[1])?;
    }
    if bias {
        y = y.add(&all[1 + weight as usize])?;
    }
    Ok(y)
}

/// The derivative of [`Norm`]: inputs are the gradient, `x`, the weight if there is one, mean and inverse standard deviation;
/// outputs the gradients of `x`, weight and bias that are needed.
#[derive(Clone, Copy, Debug)]
pub struct NormBackward {
    norm: Norm,
    needs: [bool; 3],
}

impl Primitive for NormBackward {
    fn name(&self) -> &'static str {
        if self.norm.centred { "layer_norm_backward" } else { "rms_norm_backward" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[1];
        let row = OutSpec { layout: Layout::contiguous(&x.shape()[x.ndim() - self.norm.axes..])?, dtype: x.dtype() };
        let all = [super::like(x)?, row.clone(), row];
        Ok(all.into_iter().zip(self.needs).filter(|(_, n)| *n).map(|(s, _)| s).collect())
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let specs = self.infer(inputs)?;
        let device = self.device(inputs)?;
        // Rows that are not there leave sums of nothing.
        let make = |spec: OutSpec| match inputs[1].numel() {
            0 => Tensor::zeros_layout(spec.layout, spec.dtype, device),
            _ => Tensor::empty_layout(spec.layout, spec.dtype, device),
        };
        let outputs = specs.into_iter().map(make).collect::<Result<Outputs>>()?;
        if !device.is_meta() && inputs[1].numel() > 0 {
            self.compute(inputs, &outputs)?;
        }
        Ok(outputs)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 5]>>>()?;
        let mut outs = outputs.iter();
        let mut places = [std::ptr::null_mut(); 3];
        for (place, needed) in places.iter_mut().zip(self.needs) {
            if needed && let Some(out) = outs.next() {
                *place = out.data_ptr_mut()?;
            }
        }
        let stats = 2 + self.norm.weight as usize;
        let call = layers::NormBackward {
            dtype: dense[1].dtype(),
            sizes: self.norm.sizes(&dense[1]),
            centred: self.norm.centred,
            grad: dense[0].data_ptr()?,
            input: dense[1].data_ptr()?,
            weight: optional(&dense, self.norm.weight, 2)?,
            mean: dense[stats].data_ptr()?,
            rstd: dense[stats + 1].data_ptr()?,
            input_grad: places[0],
            weight_grad: places[1],
            bias_grad: places[2],
        };
        // SAFETY: all are contiguous (outputs are made by `run`), of the shapes that the forward pass checked.
        unsafe { backend(dense[1].device())?.norm_backward(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let norm = self.norm;
        // The bias is no input: any value of it gives the same derivative.
        let x = cx.input(1)?;
        let f = |all: &[Tensor]| -> Result<Vec<Tensor>> {
            Ok(vec![norm_composite(all, norm.axes, norm.eps, norm.centred, norm.weight, false)?])
        };
        if !self.needs[2] {
            return second_vjp(&f, cx, grads, norm.forward_inputs() - norm.bias as usize, &self.needs[..1 + norm.weight as usize]);
        }
        // The gradient of the bias is the sum of `g` over rows: linear in `g`, and apart from the others.
        let bias_at = self.needs[..2].iter().filter(|n| **n).count();
        let of_bias = grads[bias_at].take();
        let rest: Grads = grads.iter().take(bias_at).cloned().collect();
        let forward = norm.forward_inputs() - norm.bias as usize;
        let mut found = second_vjp(&f, cx, &rest, forward, &self.needs[..1 + norm.weight as usize])?;
        if let Some(of_bias) = of_bias
            && cx.needs(0)
        {
            let spread = of_bias.expand_as(&x)?;
            found[0] = Some(match found[0].take() {
                Some(g) => g.add(&spread)?,
                None => spread,
            });
        }
        Ok(found)
    }

    fn reads(&self) -> Reads {
        Reads::inputs(if self.norm.weight { 0b111 } else { 0b11 })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Checks the shapes of what is normalised and of its parameters.
fn check_shapes(op: &str, x: &Tensor, shape: &[i64], parameters: [(&str, Option<&Tensor>); 2]) -> Result<()> {
    if shape.is_empty() {
        return Err(Error::runtime(format!(
            "{op}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )));
    }
    let fits = x.ndim() >= shape.len() && x.shape()[x.ndim() - shape.len()..].iter().zip(shape).all(|(&n, &s)| n as i64 == s);
    if !fits {
        let wanted: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
        return Err(Error::runtime(format!(
            "{op}: Given normalized_shape={shape:?}, expected input with shape [*, {}], but got input of size{}",
            wanted.join(", "),
            show(x.shape())
        )));
    }
    for (name, t) in parameters {
        if let Some(t) = t
            && !(t.ndim() == shape.len() && t.shape().iter().zip(shape).all(|(&n, &s)| n as i64 == s))
        {
            return Err(Error::runtime(format!(
                "{op}: Expected {name} to be of same shape as normalized_shape, but got {name} of shape {} and normalized_shape = {shape:?}",
                show(t.shape())
            )));
        }
    }
    Ok(())
}

impl Tensor {
    /// `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions, which have the sizes `shape`.
    ///
    /// `RuntimeError` where input, weight or bias do not end in `shape`.
    pub fn layer_norm(&self, shape: &[i64], weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        check_shapes("layer_norm", self, shape, [("weight", weight), ("bias", bias)])?;
        normalised(self, Norm { axes: shape.len(), eps, centred: true, weight: weight.is_some(), bias: bias.is_some() }, weight, bias)
    }

    /// `x / sqrt(mean(x²) + eps) * weight` over the last dimensions, which have the sizes `shape`; `eps` is the dtype's unless given.
    pub fn rms_norm(&self, shape: &[i64], weight: Option<&Tensor>, eps: Option<f64>) -> Result<Tensor> {
        check_shapes("rms_norm", self, shape, [("weight", weight), ("", None)])?;
        let eps = eps.unwrap_or(if self.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 });
        normalised(self, Norm { axes: shape.len(), eps, centred: false, weight: weight.is_some(), bias: false }, weight, None)
    }

    /// Layer norm over groups of channels (dimension 1) and what is behind them, with a weight and bias for each channel.
    ///
    /// `RuntimeError` where the channels do not divide into the groups.
    pub fn group_norm(&self, groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        let channels = match self.shape() {
            [_, channels, ..] => *channels as i64,
            shape => {
                return Err(Error::runtime(format!(
                    "group_norm: Expected at least 2 dimensions for input tensor but received {}",
                    shape.len()
                )));
            }
        };
        if groups <= 0 || channels % groups != 0 {
            return Err(Error::runtime(format!(
                "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={groups}",
                show(self.shape())
            )));
        }
        for (name, t) in [("weight", weight), ("bias", bias)] {
            if let Some(t) = t
                && (t.ndim() != 1 || t.numel() as i64 != channels)
            {
                return Err(Error::runtime(format!(
                    "group_norm: Expected {name} to be a vector of size equal to the number of channels in input ({channels}), but got {name} of shape {}",
                    show(t.shape())
                )));
            }
        }
        let behind: i64 = self.shape()[2..].iter().product::<usize>() as i64;
        let row = channels / groups * behind;
        let rows = self.reshape(&[self.shape()[0] as i64 * groups, row])?;
        let plain = Norm { axes: 1, eps, centred: true, weight: false, bias: false };
        let mut y = normalised(&rows, plain, None, None)?.reshape_to(self.shape())?;
        let mut each: SmallVec<[i64; 6]> = smallvec![1; self.ndim()];
        each[1] = channels;
        if let Some(w) = weight {
            y = y.mul(&w.reshape(&each)?)?;
        }
        if let Some(b) = bias {
            y = y.add(&b.reshape(&each)?)?;
        }
        Ok(y)
    }
}

fn normalised(x: &Tensor, norm: Norm, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Tensor> {
    let mut inputs: SmallVec<[&Tensor; 3]> = smallvec![x];
    inputs.extend(weight);
    inputs.extend(bias);
    Ok(bind(&norm, &inputs)?.swap_remove(0))
}

fn layer_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.layer_norm(&a.ints(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?)?.into())
}

fn rms_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.rms_norm(&a.ints(1)?, a.opt_tensor(2)?, a.opt_float(3)?)?.into())
}

fn group_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.group_norm(a.int(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function(
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
        layer_norm,
    )
    .doc("`(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions, which have the sizes `normalized_shape`; the variance is divided by the number of elements.")
    .places(place::TORCH | place::NN)
    .samples(&["T(3,5), [5]", "T(2,3,4), [3, 4], T(3,4), T(3,4)", "T(4,40), [40], T(40)", "T(4,6), [6], None, T(6)"])
    .without_out(),
    function("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", rms_norm)
        .doc("`x / sqrt(mean(x²) + eps) * weight` over the last dimensions, which have the sizes `normalized_shape`; `eps` is the dtype's unless given.")
        .places(place::TORCH | place::NN)
        .samples(&["T(3,5), [5]", "T(2,3,4), [3, 4], T(3,4)", "T(4,40), [40], T(40), 0.1"])
        .without_out(),
    function(
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    )
    .doc("Layer norm over groups of channels (dimension 1) and what is behind them, with a weight and a bias for each channel.")
    .places(place::TORCH | place::NN)
    .samples(&["T(2,4,3), 2", "T(2,6,3,2), 3, T(6), T(6)", "T(3,4), 2, T(4)"])
    .without_out(),
];
