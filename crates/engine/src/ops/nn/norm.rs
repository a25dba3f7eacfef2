//! Normalisation over the last dimensions: layer norm, root mean square norm.

use super::batch_norm::parameter_dtype;
use super::{check_float, into_packed, packed, second_vjp};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads};
use crate::transform::bind;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, Result, show};
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

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if !batch.has_batch[1..].contains(&true) {
            return batch.on_inputs(self);
        }
        // The parameters of an example stand against all its rows.
        let ndim = batch.examples[0].ndim();
        let plain = Norm { weight: false, bias: false, ..*self };
        let mut out = bind(&plain, &[&batch.front(0)?])?;
        if self.weight {
            out[0] = out[0].mul(&batch.aligned(1, ndim)?)?;
        }
        if self.bias {
            out[0] = out[0].add(&batch.aligned(1 + self.weight as usize, ndim)?)?;
        }
        Ok(Some(out))
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

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let (g, x) = (batch.front(0)?, batch.front(1)?);
        let stats = 2 + self.norm.weight as usize;
        let (mean, rstd) = (batch.front(stats)?, batch.front(stats + 1)?);
        let mut out = Outputs::new();
        if self.needs[0] {
            let weighted = if self.norm.weight { g.mul(&batch.aligned(2, batch.examples[1].ndim())?)? } else { g.clone() };
            let plain = NormBackward { norm: Norm { weight: false, bias: false, ..self.norm }, needs: [true, false, false] };
            out.extend(bind(&plain, &[&weighted, &x, &mean, &rstd])?);
        }
        // What the parameters of an example get is summed over its rows.
        let rows: SmallVec<[i64; 6]> = (1..(x.ndim() - self.norm.axes) as i64).collect();
        let summed = |t: Tensor| if rows.is_empty() { Ok(t) } else { t.sum_dims(Some(&rows), false, None) };
        if self.needs[1] {
            let along = |t: &Tensor| -> Result<Tensor> {
                let mut sizes = Dims::from_slice(t.shape());
                sizes.extend(std::iter::repeat_n(1, self.norm.axes));
                t.reshape_to(&sizes)
            };
            let shifted = if self.norm.centred { x.sub(&along(&mean)?)? } else { x.clone() };
            out.push(summed(g.mul(&shifted.mul(&along(&rstd)?)?)?)?.to_dtype(x.dtype())?);
        }
        if self.needs[2] {
            out.push(summed(g)?);
        }
        Ok(Some(out))
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
        parameter_dtype("layer_norm", self, &[weight, bias])?;
        let norm = Norm { axes: shape.len(), eps, centred: true, weight: weight.is_some(), bias: bias.is_some() };
        Ok(normalised(self, norm, weight, bias)?.swap_remove(0))
    }

    /// `x / sqrt(mean(x²) + eps) * weight` over the last dimensions, which have the sizes `shape`; `eps` is the dtype's unless given.
    pub fn rms_norm(&self, shape: &[i64], weight: Option<&Tensor>, eps: Option<f64>) -> Result<Tensor> {
        check_shapes("rms_norm", self, shape, [("weight", weight), ("", None)])?;
        if self.dtype().is_complex() {
            let eps = eps.unwrap_or_else(|| default_eps(if self.dtype() == DType::C128 { DType::F64 } else { DType::F32 }));
            let all: SmallVec<[Tensor; 2]> = std::iter::once(self).chain(weight).cloned().collect();
            return norm_composite(&all, shape.len(), eps, false, weight.is_some(), false);
        }
        super::check_float("rms_norm", self.dtype())?;
        let eps = eps.unwrap_or_else(|| default_eps(self.dtype()));
        let norm = Norm { axes: shape.len(), eps, centred: false, weight: weight.is_some(), bias: false };
        Ok(normalised(self, norm, weight, None)?.swap_remove(0))
    }
}

/// The result and the statistics of its rows. Parameters of another dtype than `x` are taken in `f32` (`f64`), and so is `x`.
fn normalised(x: &Tensor, norm: Norm, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Result<Outputs> {
    let mut inputs: SmallVec<[Tensor; 3]> = smallvec![x.clone()];
    inputs.extend([weight, bias].into_iter().flatten().cloned());
    let mixed = inputs.iter().any(|t| t.dtype() != x.dtype());
    if mixed {
        let wide = inputs.iter().fold(DType::F32, |wide, t| if t.dtype() == DType::F64 { DType::F64 } else { wide });
        for t in &mut inputs {
            *t = t.to_dtype(wide)?;
        }
    }
    let mut found = bind(&norm, &inputs.iter().collect::<SmallVec<[&Tensor; 3]>>())?;
    if mixed {
        found[0] = found[0].to_dtype(x.dtype())?;
    }
    Ok(found)
}

/// The `eps` of root mean square norm where none is given.
fn default_eps(dtype: DType) -> f64 {
    if dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 }
}

fn layer_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.layer_norm(&a.ints(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?)?.into())
}

fn rms_norm(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.rms_norm(&a.ints(1)?, a.opt_tensor(2)?, a.opt_float(3)?)?.into())
}

/// `layer_norm` with mean and inverse standard deviation of each row, in the parameters' dtype.
fn native_layer_norm(a: &Args) -> Result<Out> {
    let (x, shape, weight, bias) = (a.tensor(0)?, a.ints(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?);
    check_shapes("native_layer_norm", x, &shape, [("weight", weight), ("bias", bias)])?;
    let dtype = parameter_dtype("native_layer_norm", x, &[weight, bias])?;
    let norm = Norm { axes: shape.len(), eps: a.float(4)?, centred: true, weight: weight.is_some(), bias: bias.is_some() };
    let mut found = normalised(x, norm, weight, bias)?;
    let mut kept: SmallVec<[i64; 6]> = x.shape().iter().map(|&n| n as i64).collect();
    let first = kept.len() - shape.len();
    kept[first..].fill(1);
    for t in &mut found[1..] {
        *t = t.to_dtype(dtype)?.reshape(&kept)?;
    }
    Ok(Out::Tuple(found.into_iter().collect()))
}

/// `rms_norm` with the inverse root mean square of each row.
fn fused_rms_norm(a: &Args) -> Result<Out> {
    let (x, shape, weight) = (a.tensor(0)?, a.ints(1)?, a.opt_tensor(2)?);
    check_shapes("_fused_rms_norm", x, &shape, [("weight", weight), ("", None)])?;
    let eps = a.opt_float(3)?.unwrap_or_else(|| default_eps(x.dtype()));
    let norm = Norm { axes: shape.len(), eps, centred: false, weight: weight.is_some(), bias: false };
    let mut found = normalised(x, norm, weight, None)?;
    let mut kept: SmallVec<[i64; 6]> = x.shape().iter().map(|&n| n as i64).collect();
    let first = kept.len() - shape.len();
    kept[first..].fill(1);
    let rstd = found.pop().ok_or_else(|| Error::runtime("_fused_rms_norm: lacks its statistics"))?.reshape(&kept)?;
    Ok(Out::Tuple(smallvec![found.swap_remove(0), rstd]))
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
    function("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)", native_layer_norm)
        .doc("`layer_norm` with mean and inverse standard deviation of each row.")
        .places(place::TORCH)
        .samples(&["T(3,5), [5], None, None, 1e-5", "T(2,3,4), [3, 4], T(3,4), T(3,4), 0.01"])
        .without_out(),
    function("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)", fused_rms_norm)
        .doc("`rms_norm` with the inverse root mean square of each row.")
        .places(place::TORCH)
        .samples(&["T(3,5), [5], T(5), 0.01"])
        .without_out(),
];
