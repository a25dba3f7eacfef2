//! Layers and losses.
//!
//! Those that training spends its time in (softmax, normalisation, cross entropy, attention) are primitives with
//! kernels of their own. Each has a composite form: the derivative of its derivative is made from it, and tests
//! compare the two. The rest are composites.

mod attention;
mod average_pool;
mod batch_norm;
mod conv;
mod cross_entropy;
mod ctc;
mod distance;
mod fold;
mod grid_sample;
mod interpolate;
mod loss;
mod loss_margin;
mod max_pool;
mod max_pool_rows;
mod nll;
mod norm;
mod norm_channels;
mod pad;
mod pool;
mod recurrent;
mod recurrent_cell;
mod recurrent_gates;
mod resampled;
mod shuffle;
mod softmax;
mod spatial;
mod taps;

use super::Op;
use crate::Tensor;
use crate::autograd::{BackwardOptions, Cx, Grads, enable_grad, grad};
use crate::transform::functional::Level;
use flambeau_base::{DType, Error, Layout, Result};

pub use attention::{AttentionOptions, attention_composite};
pub use average_pool::Divisor;
pub use conv::{ConvOptions, Convolution, Padding};
pub use cross_entropy::Reduction;
pub use interpolate::Interpolation;
pub use loss_margin::TripletMargin;
pub use norm::norm_composite;
pub use norm_channels::{ChannelNorm, channel_norm_composite};
pub use pad::PadMode;
pub use recurrent::Recurrent;
pub use recurrent_cell::Cell;
pub use softmax::softmax_composite;
pub use taps::Filter;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[
    softmax::OPS,
    norm::OPS,
    cross_entropy::OPS,
    nll::OPS,
    loss::OPS,
    attention::OPS,
    conv::OPS,
    pad::OPS,
    shuffle::OPS,
    batch_norm::OPS,
    fold::OPS,
    average_pool::OPS,
    max_pool_rows::OPS,
    interpolate::OPS,
    grid_sample::OPS,
    loss_margin::OPS,
    distance::OPS,
    ctc::OPS,
    recurrent::OPS,
];

/// A function of tensors.
pub(crate) type Composite<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// The gradients of `f` at `inputs`, in tensor operations that are recorded where recording is on.
///
/// Each input is taken by itself, also where one depends on another.
pub(crate) fn vjp_of(f: Composite, inputs: &[Tensor], wanted: &[bool], grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let level = Level::differentiate();
    let _guard = enable_grad();
    let mut fresh = Vec::with_capacity(inputs.len());
    for (t, &wanted) in inputs.iter().zip(wanted) {
        fresh.push(if wanted { level.wrap(t).requiring_grad()? } else { t.clone() });
    }
    let outputs = f(&fresh)?;
    let (mut roots, mut seeds) = (Vec::new(), Vec::new());
    for (out, seed) in outputs.iter().zip(grads).filter(|(o, g)| g.is_some() && o.requires_grad()) {
        roots.push(out);
        seeds.push(seed.clone());
    }
    let asked: Vec<&Tensor> = fresh.iter().zip(wanted).filter(|(_, w)| **w).map(|(t, _)| t).collect();
    if roots.is_empty() || asked.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    let mut found = grad(&roots, &asked, &seeds, BackwardOptions::default())?.into_iter();
    Ok(wanted.iter().map(|&w| if w { found.next().flatten().map(|g| level.unwrap(&g)) } else { None }).collect())
}

/// The derivative of a backward primitive, from the composite form of the forward one.
///
/// The primitive's inputs are the gradient of the forward result, the forward inputs `1..=forward`, and what else it
/// was given; its outputs are the gradients of the forward inputs that `outputs` says.
pub(crate) fn second_vjp(f: Composite, cx: &Cx, grads: &Grads, forward: usize, outputs: &[bool]) -> Result<Grads> {
    let inputs = (0..=forward).map(|i| cx.input(i)).collect::<Result<Vec<_>>>()?;
    let wanted: Vec<bool> = (0..=forward).map(|i| cx.needs(i)).collect();
    let backward = |all: &[Tensor]| -> Result<Vec<Tensor>> {
        let found = vjp_of(f, &all[1..], outputs, &[Some(all[0].clone())])?;
        let pairs = found.into_iter().zip(&all[1..]).zip(outputs).filter(|(_, wanted)| **wanted);
        pairs.map(|((g, t), _)| g.map_or_else(|| t.zeros_like(), Ok)).collect()
    };
    let mut out: Grads = vjp_of(&backward, &inputs, &wanted, grads)?.into_iter().collect();
    out.resize(cx.inputs(), None);
    Ok(out)
}

/// The values in row-major order without gaps; the tensor itself where it is so. Nothing is recorded.
pub(crate) fn packed(t: &Tensor) -> Result<Tensor> {
    if t.is_contiguous() {
        return Ok(t.clone());
    }
    let dense = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    super::copy_into(&dense, t)?;
    Ok(dense)
}

/// Calls `f` with a contiguous tensor in the place of `out`, and copies it there where `out` is not contiguous.
pub(crate) fn into_packed(out: &Tensor, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if out.is_contiguous() {
        return f(out);
    }
    let dense = Tensor::empty(out.shape(), out.dtype(), out.device())?;
    f(&dense)?;
    super::copy_into(out, &dense)
}

/// Sizes before, along and behind a dimension; a scalar counts as one element.
pub(crate) fn around(shape: &[usize], dim: usize) -> [usize; 3] {
    if shape.is_empty() {
        return [1, 1, 1];
    }
    [shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product()]
}

/// Refuses what is not a floating point dtype.
pub(crate) fn check_float(op: &str, dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
        return Ok(());
    }
    Err(Error::not_implemented(format!("{op}: not implemented for {dtype}; convert to a floating point dtype such as float32")))
}

/// A contiguous result like `t`.
pub(crate) fn like(t: &Tensor) -> Result<super::OutSpec> {
    Ok(super::OutSpec { layout: Layout::contiguous(t.shape())?, dtype: t.dtype() })
}
