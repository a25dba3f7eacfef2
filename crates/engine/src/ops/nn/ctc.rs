//! Connectionist temporal classification.
//!
//! Source: Graves and others, "Connectionist temporal classification: labelling unsegmented sequence data with recurrent
//! neural networks", 2006. The derivative is that with respect to scores before `log_softmax`, handed to its output, as
//! PyTorch has it.

use super::cross_entropy::Reduction;
use super::{into_packed, packed};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind;
use flambeau_base::{DType, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Minus the logarithm of the probability that the scores give to the labels. Inputs are log-probabilities `[time, batch,
/// classes]`, labels `[batch, longest]` and the lengths of inputs and labels `[2, batch]`, all int64; outputs the losses and
/// the logarithms of forward probabilities `[batch, time, 2 longest + 1]`.
#[derive(Clone, Copy, Debug)]
struct Ctc {
    blank: i64,
    zero_infinity: bool,
}

impl Ctc {
    fn call(&self, x: &Tensor, labels: &Tensor, lengths: &Tensor, loss: &Tensor, alpha: &Tensor) -> Result<layers::Ctc> {
        Ok(layers::Ctc {
            dtype: x.dtype(),
            sizes: [x.shape()[0], x.shape()[1], x.shape()[2]],
            longest: labels.shape()[1],
            blank: self.blank,
            zero_infinity: self.zero_infinity,
            input: x.data_ptr()?,
            labels: labels.data_ptr()?.cast(),
            lengths: lengths.data_ptr()?.cast(),
            loss: loss.data_ptr()?,
            alpha: alpha.data_ptr()?,
        })
    }
}

impl Primitive for Ctc {
    fn name(&self) -> &'static str {
        "ctc_loss"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (x, labels) = (inputs[0], inputs[1]);
        let spec = |shape: &[usize]| -> Result<OutSpec> { Ok(OutSpec { layout: Layout::contiguous(shape)?, dtype: x.dtype() }) };
        let [time, batch] = [x.shape()[0], x.shape()[1]];
        Ok(smallvec![spec(&[batch])?, spec(&[batch, time, 2 * labels.shape()[1] + 1])?])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        for t in outputs {
            t.data_ptr_mut()?;
        }
        let call = self.call(&dense[0], &dense[1], &dense[2], &outputs[0], &outputs[1])?;
        // SAFETY: `ctc_parts` checked labels and lengths; outputs are made by `run` and dense.
        unsafe { backend(dense[0].device())?.ctc(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        let all = [g, cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.output(0)?.alias(), cx.output(1)?.alias()];
        let found = bind(&CtcBackward(*self), &all.iter().collect::<SmallVec<[&Tensor; 6]>>())?.swap_remove(0);
        Ok(smallvec![Some(found), None, None])
    }

    fn reads(&self) -> Reads {
        Reads::both(0b111, 0b11)
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

/// The derivative of [`Ctc`]: inputs are the gradient, the forward inputs and outputs.
#[derive(Clone, Copy, Debug)]
struct CtcBackward(Ctc);

impl Primitive for CtcBackward {
    fn name(&self) -> &'static str {
        "ctc_loss_backward"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![super::like(inputs[1])?])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let dense = inputs.iter().map(|t| packed(t)).collect::<Result<SmallVec<[Tensor; 6]>>>()?;
        let call = self.0.call(&dense[1], &dense[2], &dense[3], &dense[4], &dense[5])?;
        into_packed(&outputs[0], |out| {
            // SAFETY: as in the forward pass.
            unsafe { backend(out.device())?.ctc_backward(&call, dense[0].data_ptr()?, out.data_ptr_mut()?) }
        })
    }

    /// It is linear in the gradient of each loss; the second derivatives in the probabilities are not there.
    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        let Some(seed) = grads[0].take() else { return Ok(out) };
        if cx.needs(1) {
            return Err(Error::not_implemented("derivative for ctc_loss_backward is not implemented"));
        }
        if cx.needs(0) {
            let mut all = (0..cx.inputs()).map(|i| cx.input(i)).collect::<Result<SmallVec<[Tensor; 6]>>>()?;
            all[0] = all[0].ones_like()?;
            let each = bind(self, &all.iter().collect::<SmallVec<[&Tensor; 6]>>())?.swap_remove(0);
            out[0] = Some(each.mul(&seed)?.sum_dims(Some(&[0, 2]), false, None)?);
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b11_1111)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Labels `[batch, longest]` and lengths `[2, batch]`, checked.
fn arrange(x: &Tensor, targets: &Tensor, lengths: [&[i64]; 2], blank: i64) -> Result<[Tensor; 2]> {
    let op = "ctc_loss";
    let [time, batch, classes] = [x.shape()[0], x.shape()[1], x.shape()[2]];
    if blank < 0 || blank >= classes as i64 {
        return Err(Error::runtime(format!("{op}: blank must be in label range, 0 to {}, but got {blank}", classes as i64 - 1)));
    }
    for (of, name, most) in [(lengths[0], "input_lengths", time as i64), (lengths[1], "target_lengths", i64::MAX)] {
        if of.len() != batch {
            return Err(Error::runtime(format!("{op}: {name} must be of size batch_size ({batch}), got {}", of.len())));
        }
        if let Some(n) = of.iter().find(|&&n| n < 0 || n > most) {
            return Err(Error::runtime(format!("{op}: Expected {name} to have value at least 0 and at most {most}, but got value {n}")));
        }
    }
    let longest = lengths[1].iter().copied().max().unwrap_or(0) as usize;
    let given = targets.to_dtype(DType::I64)?.to_vec::<i64>()?;
    let mut labels = vec![0i64; batch * longest];
    let total: usize = lengths[1].iter().map(|&n| n as usize).sum();
    let fits = match *targets.shape() {
        [n] => n == total,
        [rows, n] => rows == batch && n >= longest,
        _ => false,
    };
    if !fits {
        return Err(Error::runtime(format!(
            "{op}: Expected targets to have size at least {longest} at dimension 1 for {batch} rows, or {total} in one dimension, but got size {}",
            show(targets.shape())
        )));
    }
    let mut at = 0;
    for (b, &n) in lengths[1].iter().enumerate() {
        let n = n as usize;
        let from = if targets.ndim() == 1 { at } else { b * targets.shape()[1] };
        labels[b * longest..][..n].copy_from_slice(&given[from..from + n]);
        at += n;
    }
    if let Some(label) = labels.iter().find(|&&l| l < 0 || l >= classes as i64) {
        return Err(Error::runtime(format!("{op}: target {label} is out of range for {classes} classes")));
    }
    Ok([Tensor::from_slice(&labels, &[batch, longest])?, Tensor::from_slice(&lengths.concat(), &[2, batch])?])
}

/// The losses and logarithms of forward probabilities of a batch.
fn ctc_parts(x: &Tensor, targets: &Tensor, lengths: [&[i64]; 2], blank: i64, zero_infinity: bool) -> Result<(Tensor, Tensor)> {
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(Error::not_implemented(format!("\"ctc_loss\" not implemented for {}; convert to float32 with .to()", x.dtype())));
    }
    if x.ndim() != 3 {
        return Err(Error::runtime(format!("ctc_loss: expected log_probs of shape [time, batch, classes], got {}", show(x.shape()))));
    }
    let [labels, lengths] = arrange(x, targets, lengths, blank)?;
    let mut found = bind(&Ctc { blank, zero_infinity }, &[x, &labels, &lengths])?;
    let alpha = found.pop().ok_or_else(|| Error::runtime("ctc_loss: lacks its probabilities"))?;
    Ok((found.swap_remove(0), alpha))
}

impl Tensor {
    /// Minus the logarithm of the probability that these log-probabilities `[time, batch, classes]`, or `[time, classes]`, give to
    /// the targets, `[batch, longest]` or one after the other; `zero_infinity` sets infinite losses to 0. A mean is taken over
    /// losses divided by the targets' lengths.
    ///
    /// `RuntimeError` where lengths, labels or shapes do not fit; `NotImplementedError` for other dtypes than f32 and f64.
    pub fn ctc_loss(
        &self,
        targets: &Tensor,
        lengths: [&[i64]; 2],
        blank: i64,
        reduction: Reduction,
        zero_infinity: bool,
    ) -> Result<Tensor> {
        let single = self.ndim() == 2;
        let (x, targets) = match (single, targets.ndim()) {
            (true, 1) => (self.unsqueeze(1)?, targets.unsqueeze(0)?),
            (true, _) => (self.unsqueeze(1)?, targets.clone()),
            _ => (self.clone(), targets.clone()),
        };
        let mut losses = ctc_parts(&x, &targets, lengths, blank, zero_infinity)?.0;
        if zero_infinity {
            losses = losses.masked_fill(&losses.alias().eq(f64::INFINITY)?, 0.0)?;
        }
        match reduction {
            Reduction::None if single => losses.squeeze(Some(&[0])),
            Reduction::Mean => {
                let sizes: Vec<f64> = lengths[1].iter().map(|&n| n.max(1) as f64).collect();
                losses.div(&Tensor::from_slice(&sizes, &[sizes.len()])?.to_dtype(losses.dtype())?)?.mean()
            }
            _ => reduction.apply(losses),
        }
    }
}

/// Lengths from a tensor of integers.
fn lengths(a: &Args, i: usize, name: &str) -> Result<Vec<i64>> {
    let t = a.tensor(i)?;
    if !t.dtype().is_integral() || t.dtype() == DType::Bool {
        return Err(Error::runtime(format!("{}: {name} must be integral, got {}", a.name, t.dtype())));
    }
    t.to_dtype(DType::I64)?.to_vec::<i64>()
}

fn from_tensors(a: &Args) -> Result<Out> {
    let all = [lengths(a, 2, "input_lengths")?, lengths(a, 3, "target_lengths")?];
    Ok(a.tensor(0)?.ctc_loss(a.tensor(1)?, [&all[0], &all[1]], a.int(4)?, Reduction::of(a.name, a.int(5)?)?, a.bool(6)?)?.into())
}

fn from_lists(a: &Args) -> Result<Out> {
    let all = [a.ints(2)?, a.ints(3)?];
    Ok(a.tensor(0)?.ctc_loss(a.tensor(1)?, [&all[0], &all[1]], a.int(4)?, Reduction::of(a.name, a.int(5)?)?, a.bool(6)?)?.into())
}

fn parts_from_lists(a: &Args) -> Result<Out> {
    let all = [a.ints(2)?, a.ints(3)?];
    let (loss, alpha) = ctc_parts(a.tensor(0)?, a.tensor(1)?, [&all[0], &all[1]], a.int(4)?, a.bool(5)?)?;
    Ok(Out::Tuple(smallvec![loss, alpha]))
}

fn parts_from_tensors(a: &Args) -> Result<Out> {
    let all = [lengths(a, 2, "input_lengths")?, lengths(a, 3, "target_lengths")?];
    let (loss, alpha) = ctc_parts(a.tensor(0)?, a.tensor(1)?, [&all[0], &all[1]], a.int(4)?, a.bool(5)?)?;
    Ok(Out::Tuple(smallvec![loss, alpha]))
}

const fn row(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH).without_out()
}

// The derivative is not that of the function by itself, so samples are of integers only, which have none.
pub(super) static OPS: &[Op] = &[
    row("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor", from_lists)
        .autocast_full()
        .doc("Minus the logarithm of the probability that log-probabilities `[time, batch, classes]` give to targets of these lengths (Graves et al., 2006).")
        .samples(&["T(0,1,3), I(1,0), [0], [0]"]),
    row("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor", from_tensors)
        .autocast_full()
        .doc("The same, with lengths as tensors.")
        .samples(&["T(0,1,3), I(1,0), I(1; 0..1), I(1; 0..1), 0, 0"]),
    row("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)", parts_from_lists)
        .doc("The losses of `ctc_loss`, and the logarithms of forward probabilities.")
        .samples(&["T(0,1,3), I(1,0), [0], [0]"]),
    row("_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)", parts_from_tensors)
        .doc("The same, with lengths as tensors.")
        .samples(&["T(0,1,3), I(1,0), I(1; 0..1), I(1; 0..1)"]),
];
