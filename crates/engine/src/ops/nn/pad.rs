//! Padding: a constant around a tensor, or the tensor's own elements mirrored, repeated or wrapped around.

use super::spatial::{format_of, tied};
use crate::Tensor;
use crate::autograd::{Cx, Grads, no_grad};
use crate::ops::join::cat;
use crate::ops::pointwise::fill_with;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads, copy_into};
use crate::transform::bind1;
use flambeau_base::{Dims, Error, Layout, MemoryFormat, Result, Scalar, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// How much is added before and behind each dimension, from the first on; negative amounts are cut off.
pub type Amounts = SmallVec<[(i64, i64); 6]>;

/// What stands in the elements that padding adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A number.
    Constant(Scalar),
    /// The tensor mirrored at its first and last element, which are not repeated.
    Reflect,
    /// The nearest element.
    Replicate,
    /// The tensor again from its other end.
    Circular,
}

/// A tensor with a number around it.
#[derive(Clone, Debug)]
struct ConstantPad {
    amounts: Amounts,
    value: Scalar,
}

impl ConstantPad {
    /// Where the elements that stay are: in the input and in the result, as start and length of each dimension.
    fn kept(&self, sizes: &[usize]) -> SmallVec<[(usize, usize, usize); 6]> {
        let cut = |n: i64| (-n).max(0) as usize;
        let kept = |(&n, &(before, behind)): (&usize, &(i64, i64))| {
            let length = n.saturating_sub(cut(before) + cut(behind));
            (cut(before), before.max(0) as usize, length)
        };
        sizes.iter().zip(&self.amounts).map(kept).collect()
    }
}

impl Primitive for ConstantPad {
    fn name(&self) -> &'static str {
        "constant_pad_nd"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        let sizes = padded_sizes("constant_pad_nd", x.shape(), &self.amounts)?;
        Ok(smallvec![OutSpec { layout: Layout::in_format("constant_pad_nd", &sizes, format_of(x), None)?, dtype: x.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, out) = (inputs[0], &outputs[0]);
        let (mut from, mut to) = (x.layout().clone(), out.layout().clone());
        for (d, (start, target, length)) in self.kept(x.shape()).into_iter().enumerate() {
            // What lies before and behind in this dimension, within what stays of those in front of it.
            for (at, n) in [(0, target), (target + length, out.shape()[d] - target - length)] {
                if n > 0 {
                    fill_with(&out.alias_with(to.slice(d, at, n, 1), out.dtype()), self.value)?;
                }
            }
            from = from.slice(d, start, length, 1);
            to = to.slice(d, target, length, 1);
        }
        copy_into(&out.alias_with(to, out.dtype()), &x.alias_with(from, x.dtype()))
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        let back = self.amounts.iter().map(|&(before, behind)| (-before, -behind)).collect();
        Ok(smallvec![Some(constant_pad(&grad, back, 0.0.into())?)])
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn padded_sizes(op: &str, sizes: &[usize], amounts: &[(i64, i64)]) -> Result<Dims> {
    let mut out = Dims::new();
    for (d, (&n, &(before, behind))) in sizes.iter().zip(amounts).enumerate() {
        // What is cut off has to be there before anything is added.
        let left = (n as i64).checked_add(before.min(0)).and_then(|s| s.checked_add(behind.min(0))).filter(|&s| s >= 0);
        let size = left.and_then(|s| s.checked_add(before.max(0))).and_then(|s| s.checked_add(behind.max(0)));
        match size {
            Some(size) => out.push(size as usize),
            None => {
                return Err(Error::runtime(format!(
                    "{op}: The input size {n}, plus negative padding {before} and {behind} resulted in a negative output size, which is invalid. Check dimension {d} of your input of shape {}.",
                    show(sizes)
                )));
            }
        }
    }
    Ok(out)
}

fn constant_pad(x: &Tensor, amounts: Amounts, value: Scalar) -> Result<Tensor> {
    if amounts.iter().any(|&(before, behind)| before > 0 || behind > 0) {
        return bind1(&ConstantPad { amounts, value }, &[x]);
    }
    let sizes = padded_sizes("constant_pad_nd", x.shape(), &amounts)?;
    let mut part = x.clone();
    for (d, (&(before, behind), &size)) in amounts.iter().zip(&sizes).enumerate() {
        if (before, behind) != (0, 0) {
            part = part.narrow(d as i64, (-before).min(x.shape()[d] as i64), size as i64)?;
        }
    }
    part.copy_in(MemoryFormat::Preserve)
}

/// PyTorch's list of amounts, the last dimension first, as one pair for each dimension.
fn amounts_of(op: &str, pad: &[i64], ndim: usize) -> Result<Amounts> {
    if !pad.len().is_multiple_of(2) {
        return Err(Error::runtime(format!("{op}: Length of pad must be even but instead it equals {}", pad.len())));
    }
    if pad.len() > 2 * ndim {
        return Err(Error::runtime(format!(
            "{op}: Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while the input has {ndim} dimensions.",
            pad.len()
        )));
    }
    let mut amounts = Amounts::from_elem((0, 0), ndim);
    for (i, pair) in pad.chunks_exact(2).enumerate() {
        amounts[ndim - 1 - i] = (pair[0], pair[1]);
    }
    Ok(amounts)
}

/// Pads one dimension with the tensor's own elements.
fn pad_dim(x: &Tensor, d: usize, (before, behind): (i64, i64), mode: PadMode) -> Result<Tensor> {
    if (before, behind) == (0, 0) {
        return Ok(x.clone());
    }
    let (dim, n) = (d as i64, x.shape()[d] as i64);
    let core = x.narrow(dim, (-before).max(0), (n + before.min(0) + behind.min(0)).max(0))?;
    let kept = core.shape()[d] as i64;
    let (before, behind) = (before.max(0), behind.max(0));
    let repeated = |at: i64, count: i64| {
        let mut sizes: SmallVec<[i64; 6]> = x.shape().iter().map(|&n| n as i64).collect();
        sizes[d] = count;
        x.narrow(dim, at, 1)?.expand(&sizes)
    };
    let ends = match mode {
        PadMode::Reflect => [x.narrow(dim, 1.min(n), before)?.flip(&[dim])?, x.narrow(dim, n - 1 - behind, behind)?.flip(&[dim])?],
        PadMode::Replicate => [repeated(0, before)?, repeated(n - 1, behind)?],
        // Wraps what is left after cutting.
        _ => [core.narrow(dim, kept - before, before)?, core.narrow(dim, 0, behind)?],
    };
    let pieces: SmallVec<[&Tensor; 3]> =
        [&ends[0], &core, &ends[1]].into_iter().filter(|t| t.shape()[d] > 0 || std::ptr::eq(*t, &core)).collect();
    cat(&pieces, dim)
}

/// Pads dimension by dimension.
fn pad_all(x: &Tensor, amounts: &Amounts, mode: PadMode) -> Result<Tensor> {
    if format_of(x) == MemoryFormat::ChannelsLast && mode != PadMode::Circular {
        let inside = x.permute(&[0, 2, 3, 1])?;
        return pad_dim(&pad_dim(&inside, 1, amounts[2], mode)?, 2, amounts[3], mode)?.permute(&[0, 3, 1, 2]);
    }
    let mut out = x.clone();
    for (d, &pair) in amounts.iter().enumerate() {
        out = pad_dim(&out, d, pair, mode)?;
    }
    if amounts.iter().all(|&p| p == (0, 0)) { out.copy_in(MemoryFormat::Contiguous) } else { Ok(out) }
}

/// The transpose of [`pad_dim`]: from the gradient of the padded dimension to that of its `n` elements.
fn unpad_dim(g: &Tensor, d: usize, n: usize, (before, behind): (i64, i64), mode: PadMode) -> Result<Tensor> {
    if (before, behind) == (0, 0) {
        return Ok(g.clone());
    }
    let (dim, n) = (d as i64, n as i64);
    let (cut, cut_end) = ((-before).max(0), (-behind).max(0));
    let (before, behind, kept) = (before.max(0), behind.max(0), n - cut - cut_end);
    // A part of the gradient where it belongs among the elements.
    let at = |part: &Tensor, start: i64| {
        let mut amounts = Amounts::from_elem((0, 0), g.ndim());
        amounts[d] = (start, n - start - part.shape()[d] as i64);
        constant_pad(part, amounts, 0.0.into())
    };
    let mut sum = at(&g.narrow(dim, before, kept)?, cut)?;
    let parts = [(before, g.narrow(dim, 0, before)?), (behind, g.narrow(dim, before + kept, behind)?)];
    for (i, (count, part)) in parts.iter().enumerate().filter(|(_, (count, _))| *count > 0) {
        let first = i == 0;
        let more = match mode {
            PadMode::Reflect => at(&part.flip(&[dim])?, if first { 1 } else { n - 1 - count })?,
            PadMode::Replicate => at(&part.sum_dims(Some(&[dim]), true, None)?, if first { 0 } else { n - 1 })?,
            _ => at(part, if first { cut + kept - count } else { cut })?,
        };
        sum = sum.add(&more)?;
    }
    Ok(sum)
}

/// A tensor with its own elements around it.
#[derive(Clone, Debug)]
struct Border {
    amounts: Amounts,
    mode: PadMode,
}

impl Primitive for Border {
    fn name(&self) -> &'static str {
        match self.mode {
            PadMode::Reflect => "reflection_pad",
            PadMode::Replicate => "replication_pad",
            _ => "circular_pad",
        }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let sizes = padded_sizes("pad", inputs[0].shape(), &self.amounts)?;
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype: inputs[0].dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        copy_into(&outputs[0], &self.run(inputs)?[0])
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let _guard = no_grad();
        Ok(smallvec![pad_all(&inputs[0].alias(), &self.amounts, self.mode)?.alias()])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(mut grad), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None]) };
        for (d, &pair) in self.amounts.iter().enumerate().rev() {
            grad = unpad_dim(&grad, d, info.sizes[d], pair, self.mode)?;
        }
        Ok(smallvec![Some(if self.mode == PadMode::Circular { grad } else { tied(grad, &cx.input(0)?)? })])
    }

    fn reads(&self) -> Reads {
        if self.mode == PadMode::Circular { Reads::NONE } else { Reads::INPUT }
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Refuses what the modes other than constant cannot do.
fn check_amounts(x: &Tensor, amounts: &Amounts, padded: usize, mode: PadMode) -> Result<()> {
    let shape = x.shape();
    let op = match mode {
        PadMode::Reflect => "reflection_pad",
        PadMode::Replicate => "replication_pad",
        _ => "circular_pad",
    };
    let batched = x.ndim() == padded + 2;
    if shape.iter().enumerate().any(|(d, &n)| n == 0 && !(batched && d == 0)) {
        return Err(Error::runtime(format!(
            "{op}{padded}d: Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
            padded + 1,
            padded + 2,
            show(shape)
        )));
    }
    for (d, &(before, behind)) in amounts.iter().enumerate() {
        let n = shape[d] as i64;
        if (before, behind) == (0, 0) {
            continue;
        }
        if mode == PadMode::Reflect && (before >= n || behind >= n) {
            return Err(Error::runtime(format!(
                "{op}{padded}d: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {behind}) at dimension {d} of input {}",
                show(shape)
            )));
        }
        if mode == PadMode::Circular && (before > n || behind > n) {
            return Err(Error::runtime(format!(
                "{op}: Padding value causes wrapping around more than once: padding ({before}, {behind}) at dimension {d} of input {}",
                show(shape)
            )));
        }
        if n + before + behind < 1 && !(batched && d == 0) {
            return Err(Error::runtime(format!(
                "{op}{padded}d: padding ({before}, {behind}) leaves nothing of dimension {d} of input {}: the padded size is {}",
                show(shape),
                n + before + behind
            )));
        }
    }
    Ok(())
}

impl Tensor {
    /// The tensor with so many elements added before and behind its last dimensions; negative amounts are cut off.
    ///
    /// `pad` holds two amounts for each dimension, those of the last dimension first. Modes other than constant take one
    /// to three dimensions behind a channel and, perhaps, a batch dimension. `RuntimeError` for amounts that do not fit.
    pub fn pad(&self, pad: &[i64], mode: PadMode) -> Result<Tensor> {
        let amounts = amounts_of("pad", pad, self.ndim())?;
        if let PadMode::Constant(value) = mode {
            return constant_pad(self, amounts, value);
        }
        let padded = pad.len() / 2;
        if !(1..=3).contains(&padded) || !(padded + 1..=padded + 2).contains(&self.ndim()) {
            return Err(Error::not_implemented(format!(
                "pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: the last one to three dimensions behind channels and, perhaps, a batch; got shape {} and {padded} padded dimensions",
                show(self.shape())
            )));
        }
        check_amounts(self, &amounts, padded, mode)?;
        bind1(&Border { amounts, mode }, &[self])
    }
}

fn pad(a: &Args) -> Result<Out> {
    let (x, value) = (a.tensor(0)?, a.opt_scalar(3)?);
    let mode = match a.str(2)?.as_str() {
        "constant" => PadMode::Constant(value.unwrap_or(Scalar::Float(0.0))),
        other => {
            let mode = match other {
                "reflect" => PadMode::Reflect,
                "replicate" => PadMode::Replicate,
                "circular" => PadMode::Circular,
                _ => {
                    return Err(Error::not_implemented(format!(
                        "pad: Unrecognised padding mode '{other}': use 'constant', 'reflect', 'replicate' or 'circular'"
                    )));
                }
            };
            if value.is_some_and(|v| v.to_f64() != 0.0) {
                return Err(Error::runtime(format!("pad: Padding mode \"{other}\" doesn't take in value argument")));
            }
            mode
        }
    };
    Ok(x.pad(&a.ints(1)?, mode)?.into())
}

fn constant_pad_nd(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    Ok(constant_pad(x, amounts_of("constant_pad_nd", &a.ints(1)?, x.ndim())?, a.scalar(2)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("pad(Tensor self, SymInt[] pad, str mode=\"constant\", Scalar? value=None) -> Tensor", pad)
        .doc("`input` with elements added before and behind its last dimensions: `pad` has two amounts for each, the last dimension first; negative amounts cut off. `mode`: 'constant' (`value`), 'reflect', 'replicate' or 'circular'.")
        .places(place::NN)
        .without_out()
        .samples(&[
            "T(2,3), [1, 2]",
            "T(2,3,4), [1, -1, 0, 2], 'constant', 1.5",
            "T(2,3,4), [-1, -1]",
            "T(2,3,4), [2, 1], 'reflect'",
            "T(1,2,3,4), [2, 3, 1, 2], 'reflect'",
            "T(1,2,3,4), [2, -1, -1, 2], 'replicate'",
            "T(2,3,4,3), [1, 2, 2, 1, 0, 1], 'replicate'",
            "T(2,3,4), [3, 2], 'circular'",
            "T(1,2,3,4), [1, -1, 2, 0], 'circular'",
        ]),
    function("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", constant_pad_nd)
        .doc("`input` with `value` before and behind its last dimensions: two amounts for each, the last dimension first; negative amounts cut off.")
        .places(place::TORCH)
        .samples(&["T(2,3), [1, 2]", "T(2,3,4), [1, -1, 0, 2], 1.5", "T(3), [-1, -1]"]),
];
