//! Normalisation by channels (dimension 1): the primitive of batch and group norm, and its derivative.

use super::{check_float, into_packed, packed, second_vjp};
use crate::Tensor;
use crate::autograd::{Cx, Grads, is_grad_enabled};
use crate::backend::{backend, layers};
use crate::ops::pointwise::fill_with;
use crate::ops::{OutSpec, Primitive, Reads};
use flambeau_base::{Dims, Layout, MemoryFormat, Result, Scalar};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `(x - mean) / sqrt(variance + eps) * weight + bias` with a weight and a bias for each channel, in the accumulator's dtype;
/// inputs are `x`, the weight and the bias, where they are there, and mean and inverse standard deviation where they are given.
/// Where they are not, further outputs are mean, inverse standard deviation and variance of each channel or group.
#[derive(Clone, Copy, Debug)]
pub struct ChannelNorm {
    /// The number of groups of channels; 0 for statistics over the batch.
    pub groups: usize,
    /// What is added to the variance.
    pub eps: f64,
    /// Whether there is a weight.
    pub weight: bool,
    /// Whether there is a bias.
    pub bias: bool,
    /// Whether statistics are given.
    pub given: bool,
}

impl ChannelNorm {
    fn forward_inputs(&self) -> usize {
        1 + self.weight as usize + self.bias as usize
    }

    /// Whether the kernel works on channels that lie innermost.
    fn last(&self, x: &Tensor) -> bool {
        let single = x.shape()[2..].iter().all(|&n| n == 1);
        self.groups == 0 && (single || format_of(x) != MemoryFormat::Contiguous)
    }

    /// What the gradients of the groups' means and inverse standard deviations give to the input's.
    fn through_statistics(&self, cx: &Cx, grads: &mut Grads) -> Result<Option<Tensor>> {
        if self.groups == 0 || !cx.needs(0) || grads[1..3].iter().all(|g| g.is_none()) {
            return Ok(None);
        }
        let x = cx.input(0)?;
        let (mean, rstd) = (cx.output(1)?.unsqueeze(2)?, cx.output(2)?.unsqueeze(2)?);
        let row = (x.numel() / mean.numel().max(1)) as i64;
        let rows = x.to_dtype(mean.dtype())?.reshape(&[x.shape()[0] as i64, self.groups as i64, row])?;
        let count = row as f64;
        let mut sum = rows.mul(0.0)?;
        if let Some(g) = grads[1].take() {
            sum = sum.add(&g.unsqueeze(2)?.div(count)?)?;
        }
        if let Some(g) = grads[2].take() {
            let slope = rstd.pow(3.0)?.mul(&g.unsqueeze(2)?)?.div(-count)?;
            sum = sum.add(&rows.sub(&mean)?.mul(&slope)?)?;
        }
        sum.reshape_to(x.shape())?.to_dtype(x.dtype()).map(Some)
    }

    /// The shape of the statistics.
    fn sets(&self, x: &Tensor) -> Dims {
        match self.groups {
            0 => Dims::from_slice(&x.shape()[1..2]),
            groups => Dims::from_slice(&[x.shape()[0], groups]),
        }
    }
}

/// Sizes of batch, channels and what is behind them.
pub(super) fn sizes(x: &Tensor) -> [usize; 3] {
    [x.shape()[0], x.shape()[1], x.shape()[2..].iter().product()]
}

/// The format in which a result like `x` lies: channels last where `x` lies so.
pub(super) fn format_of(x: &Tensor) -> MemoryFormat {
    let last = if x.ndim() == 4 { MemoryFormat::ChannelsLast } else { MemoryFormat::ChannelsLast3d };
    if !x.is_contiguous() && x.layout().is_contiguous_in(last) { last } else { MemoryFormat::Contiguous }
}

/// The tensor, or a view of it with channels last, without gaps.
fn dense(t: &Tensor, last: bool) -> Result<Tensor> {
    if last { packed(&channels_last(t)?) } else { packed(t) }
}

fn channels_last(t: &Tensor) -> Result<Tensor> {
    let order: SmallVec<[i64; 6]> = std::iter::once(0).chain(2..t.ndim() as i64).chain([1]).collect();
    t.alias().permute(&order)
}

/// Calls `f` with memory for the result, dense in the order in which the kernel writes.
fn into_dense(out: &Tensor, last: bool, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if last { into_packed(&channels_last(out)?, f) } else { into_packed(out, f) }
}

fn optional(all: &[Tensor], there: bool, i: usize) -> Result<*const u8> {
    if there { Ok(all[i].data_ptr()?.cast_const()) } else { Ok(std::ptr::null()) }
}

impl Primitive for ChannelNorm {
    fn name(&self) -> &'static str {
        if self.groups == 0 { "native_batch_norm" } else { "native_group_norm" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_float(self.name(), x.dtype())?;
        let mut specs = smallvec![OutSpec { layout: Layout::in_format(self.name(), x.shape(), format_of(x), None)?, dtype: x.dtype() }];
        if !self.given {
            let set = OutSpec { layout: Layout::contiguous(&self.sets(x))?, dtype: x.dtype().accumulator() };
            specs.extend([set.clone(), set.clone(), set]);
        }
        Ok(specs)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return outputs[1..].iter().try_for_each(|t| fill_with(t, Scalar::Float(0.0)));
        }
        let last = self.last(inputs[0]);
        let mut all: SmallVec<[Tensor; 5]> = smallvec![dense(inputs[0], last)?];
        for t in &inputs[1..] {
            all.push(packed(t)?);
        }
        let given = self.forward_inputs();
        let [mean, rstd] = match self.given {
            true => [all[given].data_ptr()?, all[given + 1].data_ptr()?],
            false => [outputs[1].data_ptr_mut()?, outputs[2].data_ptr_mut()?],
        };
        let variance = if self.given { std::ptr::null_mut() } else { outputs[3].data_ptr_mut()? };
        into_dense(&outputs[0], last, |out| {
            let call = layers::ChannelNorm {
                dtype: out.dtype(),
                sizes: sizes(inputs[0]),
                last,
                groups: self.groups,
                eps: self.eps,
                given: self.given,
                input: all[0].data_ptr()?,
                weight: optional(&all, self.weight, 1)?,
                bias: optional(&all, self.bias, 1 + self.weight as usize)?,
                out: out.data_ptr_mut()?,
                mean,
                rstd,
                variance,
            };
            // SAFETY: all are dense in the order that `last` says; the callers checked shapes and dtypes.
            unsafe { backend(out.device())?.channel_norm(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        let Some(g) = grads[0].take() else {
            out[0] = self.through_statistics(cx, grads)?;
            return Ok(out);
        };
        let at = [Some(0), self.weight.then_some(1), self.bias.then_some(1 + self.weight as usize)];
        let mut needs = at.map(|i| i.is_some_and(|i| cx.needs(i)));
        if let (Some(i), true, true) = (at[2], needs[2], self.groups > 0 && is_grad_enabled()) {
            // It depends on the gradient alone, and has no derivative where that has none; as in PyTorch, for groups only.
            let dims: SmallVec<[i64; 6]> = std::iter::once(0).chain(2..g.ndim() as i64).collect();
            out[i] = Some(g.to_dtype(g.dtype().accumulator())?.sum_dims(Some(&dims), false, None)?);
            needs[2] = false;
        }
        let mut inputs: SmallVec<[Tensor; 5]> = smallvec![g, cx.input(0)?];
        if self.weight {
            inputs.push(cx.input(1)?);
        }
        let first = self.forward_inputs();
        inputs.extend(match self.given {
            true => [cx.input(first)?, cx.input(first + 1)?],
            false => [cx.output(1)?.alias(), cx.output(2)?.alias()],
        });
        let inputs: SmallVec<[&Tensor; 5]> = inputs.iter().collect();
        if needs == [false; 3] {
            return Ok(out);
        }
        let mut found = crate::transform::bind(&ChannelNormBackward { norm: *self, needs }, &inputs)?.into_iter();
        for (i, needed) in at.into_iter().zip(needs) {
            if let (Some(i), true) = (i, needed) {
                out[i] = found.next();
            }
        }
        if let Some(more) = self.through_statistics(cx, grads)? {
            out[0] = Some(match out[0].take() {
                Some(g) => g.add(&more)?,
                None => more,
            });
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        let own = if self.weight { 0b11 } else { 0b1 };
        match self.given {
            true => Reads::inputs(own | 0b11 << self.forward_inputs()),
            false => Reads::both(own, 0b110),
        }
    }

    fn differentiable(&self, i: usize) -> bool {
        // Of a batch the statistics are by-products; those of groups are results, as in PyTorch.
        i == 0 || self.groups > 0 && i < 3
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The composite form: `all` holds `x`, weight and bias where they are there; `given` mean and inverse standard deviation.
pub fn channel_norm_composite(norm: &ChannelNorm, all: &[Tensor], given: Option<&[Tensor; 2]>) -> Result<Tensor> {
    let x = all[0].to_dtype(all[0].dtype().accumulator())?;
    let [batch, channels, behind] = sizes(&x).map(|n| n as i64);
    let (shape, dims): ([i64; 3], &[i64]) = match norm.groups as i64 {
        0 => ([batch, channels, behind], &[0, 2]),
        groups => ([batch, groups, channels / groups * behind], &[2]),
    };
    let rows = x.reshape(&shape)?;
    let hat = match given {
        Some([mean, rstd]) => rows.sub(&mean.reshape(&[1, -1, 1])?)?.mul(&rstd.reshape(&[1, -1, 1])?)?,
        None => {
            let shifted = rows.sub(&rows.mean_dims(Some(dims), true, None)?)?;
            let variance = shifted.square()?.mean_dims(Some(dims), true, None)?;
            shifted.mul(&variance.add(norm.eps)?.rsqrt()?)?
        }
    };
    let mut y = hat.reshape(&[batch, channels, behind])?;
    if norm.weight {
        y = y.mul(&all[1].reshape(&[1, -1, 1])?)?;
    }
    if norm.bias {
        y = y.add(&all[1 + norm.weight as usize].reshape(&[1, -1, 1])?)?;
    }
    y.reshape_to(all[0].shape())?.to_dtype(all[0].dtype())
}

/// The derivative of [`ChannelNorm`]: inputs are the gradient, `x`, the weight if there is one, mean and inverse standard
/// deviation; outputs the gradients of `x`, weight and bias that are needed.
#[derive(Clone, Copy, Debug)]
pub struct ChannelNormBackward {
    norm: ChannelNorm,
    needs: [bool; 3],
}

impl Primitive for ChannelNormBackward {
    fn name(&self) -> &'static str {
        if self.norm.groups == 0 { "native_batch_norm_backward" } else { "native_group_norm_backward" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[1];
        let channel = OutSpec { layout: Layout::contiguous(&x.shape()[1..2])?, dtype: x.dtype().accumulator() };
        let like = OutSpec { layout: Layout::in_format(self.name(), x.shape(), format_of(x), None)?, dtype: x.dtype() };
        Ok([like, channel.clone(), channel].into_iter().zip(self.needs).filter(|(_, n)| *n).map(|(s, _)| s).collect())
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let x = inputs[1];
        if x.numel() == 0 {
            return outputs.iter().try_for_each(|t| fill_with(t, Scalar::Float(0.0)));
        }
        let last = self.norm.last(x);
        let (g, x) = (dense(inputs[0], last)?, dense(x, last)?);
        let rest = inputs[2..].iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        let stats = self.norm.weight as usize;
        let mut outs = outputs.iter();
        let [of_x, of_weight, of_bias] = self.needs.map(|needed| if needed { outs.next() } else { None });
        let place = |t: Option<&Tensor>| t.map_or(Ok(std::ptr::null_mut()), |t| t.data_ptr_mut());
        let mut call = layers::ChannelNormBackward {
            dtype: x.dtype(),
            sizes: sizes(inputs[1]),
            last,
            groups: self.norm.groups,
            given: self.norm.given,
            grad: g.data_ptr()?,
            input: x.data_ptr()?,
            weight: optional(&rest, self.norm.weight, 0)?,
            mean: rest[stats].data_ptr()?,
            rstd: rest[stats + 1].data_ptr()?,
            input_grad: std::ptr::null_mut(),
            weight_grad: place(of_weight)?,
            bias_grad: place(of_bias)?,
        };
        let device = backend(x.device())?;
        match of_x {
            Some(out) => into_dense(out, last, |out| {
                call.input_grad = out.data_ptr_mut()?;
                // SAFETY: all are dense in the order that `last` says, of the shapes that the forward pass checked.
                unsafe { device.channel_norm_backward(&call) }
            }),
            // SAFETY: as above.
            None => unsafe { device.channel_norm_backward(&call) },
        }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        // The bias is no input: any value of it gives the same derivative.
        let norm = ChannelNorm { bias: false, ..self.norm };
        let stats = 2 + norm.weight as usize;
        let given = if norm.given { Some([cx.input(stats)?, cx.input(stats + 1)?]) } else { None };
        let f = |all: &[Tensor]| -> Result<Vec<Tensor>> { Ok(vec![channel_norm_composite(&norm, all, given.as_ref())?]) };
        let own = &self.needs[..1 + norm.weight as usize];
        let bias_at = self.needs[..2].iter().filter(|n| **n).count();
        let of_bias = if self.needs[2] { grads[bias_at].take() } else { None };
        let rest: Grads = grads.iter().take(bias_at).cloned().collect();
        let mut found = second_vjp(&f, cx, &rest, norm.forward_inputs(), own)?;
        // The gradient of the bias is a sum over the gradient: linear in it, and apart from the others.
        if let Some(of_bias) = of_bias
            && cx.needs(0)
        {
            let x = cx.input(1)?;
            let mut each: SmallVec<[i64; 6]> = smallvec![1; x.ndim()];
            each[1] = -1;
            let spread = of_bias.to_dtype(x.dtype())?.reshape(&each)?.expand_as(&x)?;
            found[0] = Some(match found[0].take() {
                Some(g) => g.add(&spread)?,
                None => spread,
            });
        }
        Ok(found)
    }

    fn reads(&self) -> Reads {
        let stats = if self.norm.given { 0b11 << (2 + self.norm.weight as usize) } else { 0 };
        Reads::inputs(stats | if self.norm.weight { 0b111 } else { 0b11 })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
