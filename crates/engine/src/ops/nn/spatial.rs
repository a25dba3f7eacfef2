//! What pools, paddings and resamplings share: memory formats, sizes given once for all dimensions.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::table::Args;
use crate::ops::{OutSpec, Outputs, Primitive, copy_into};
use crate::transform::bind1;
use flambeau_base::{Dims, Error, Layout, MemoryFormat, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// One size for each spatial dimension.
pub(super) type Spatial = SmallVec<[usize; 3]>;

/// The memory format that a result takes over from its input: channels last where the strides of the input say so.
pub(super) fn format_of(t: &Tensor) -> MemoryFormat {
    let (order, format): (&[usize], MemoryFormat) = match t.ndim() {
        4 => (&[1, 3, 2, 0], MemoryFormat::ChannelsLast),
        5 => (&[1, 4, 3, 2, 0], MemoryFormat::ChannelsLast3d),
        _ => return MemoryFormat::Contiguous,
    };
    let (sizes, strides) = (t.shape(), t.strides());
    let mut least = 0;
    for &d in order {
        let tied = d == 0 && least == strides[1];
        if strides[1] == 0 || sizes[d] == 0 || strides[d] < least || tied {
            return MemoryFormat::Contiguous;
        }
        least = strides[d] * sizes[d].max(1) as isize;
    }
    format
}

/// [`format_of`] where `n` spatial dimensions have a batch and channels before them; without a batch nothing is channels last.
pub(super) fn spatial_format(t: &Tensor, n: usize) -> MemoryFormat {
    if t.ndim() == n + 2 { format_of(t) } else { MemoryFormat::Contiguous }
}

/// The values without gaps in a memory format; the tensor itself where it is so. Nothing is recorded.
pub(super) fn packed_in(t: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    if t.layout().is_contiguous_in(format) {
        return Ok(t.clone());
    }
    let dense = Tensor::empty_layout(Layout::in_format("contiguous", t.shape(), format, None)?, t.dtype(), t.device())?;
    copy_into(&dense, t)?;
    Ok(dense)
}

/// Calls `f` with a tensor of that memory format in the place of `out`, and copies it there where `out` has another.
pub(super) fn into_packed_in(out: &Tensor, format: MemoryFormat, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if out.layout().is_contiguous_in(format) {
        return f(out);
    }
    let layout = Layout::in_format("contiguous", out.shape(), format, None)?;
    let dense = Tensor::empty_layout(layout, out.dtype(), out.device())?;
    f(&dense)?;
    copy_into(out, &dense)
}

/// Whether channels lie innermost in a format.
pub(super) fn channels_last(format: MemoryFormat) -> bool {
    matches!(format, MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d)
}

/// Argument `i`: a size for each of `n` dimensions, given so or once for all; `None` where it is empty or not given.
pub(super) fn sizes_of(a: &Args, i: usize, n: usize, what: &str) -> Result<Option<SmallVec<[i64; 3]>>> {
    let given = match a.opt_ints(i)? {
        None => return Ok(None),
        Some(given) if given.is_empty() => return Ok(None),
        Some(given) => given,
    };
    match given.len() {
        1 => Ok(Some(SmallVec::from_elem(given[0], n))),
        len if len == n => Ok(Some(given.iter().copied().collect())),
        len => Err(Error::runtime(format!("{}: {what} must be one int or {n} of them, got {len}: {given:?}", a.name))),
    }
}

/// The shape with its last dimensions replaced.
pub(super) fn with_last(shape: &[usize], last: &[usize]) -> Dims {
    let mut out = Dims::from_slice(&shape[..shape.len() - last.len()]);
    out.extend_from_slice(last);
    out
}

/// A gradient as it is. Inputs: the gradient, and the input of the forward pass, on which it depends in name only.
#[derive(Clone, Copy, Debug)]
struct Tie;

impl Primitive for Tie {
    fn name(&self) -> &'static str {
        "tie"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: inputs[0].layout().clone(), dtype: inputs[0].dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        copy_into(&outputs[0], inputs[0])
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        Ok(smallvec![inputs[0].alias()])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None, None]) };
        let zeros = match cx.input_info(1) {
            Some(info) if cx.needs(1) => Some(Tensor::zeros(&info.sizes, grad.dtype(), grad.device())?),
            _ => None,
        };
        Ok(smallvec![cx.needs(0).then_some(grad), zeros])
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A gradient that can be differentiated again, as PyTorch's are where its backward kernel is handed the input, with zeros as the result.
pub(super) fn tied(grad: Tensor, x: &Tensor) -> Result<Tensor> {
    if x.is_followed() { bind1(&Tie, &[&grad, x]) } else { Ok(grad) }
}
