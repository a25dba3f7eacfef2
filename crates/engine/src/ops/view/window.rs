//! Views of a part: elements, ranges and diagonals, and the way back from a part to the whole.

use super::{View, Viewed, view, zero_fill};
use crate::Tensor;
use crate::autograd::{Cx, Grads, OutputInfo};
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::transform::bind1;
use crate::transform::vectorize::{Batch, Lifted};
use flambeau_base::{Dims, Error, Layout, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// A step from a whole to a part. Indices are already counted from the start and checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Dimension `dim` dropped at `index`.
    Select {
        /// Which dimension.
        dim: usize,
        /// Where.
        index: usize,
    },
    /// `length` elements of dimension `dim` from `start` on, `step` apart.
    Slice {
        /// Which dimension.
        dim: usize,
        /// The first.
        start: usize,
        /// How many.
        length: usize,
        /// How far apart.
        step: usize,
    },
    /// A dimension of size 1 put in.
    New(usize),
    /// The diagonal of two dimensions, put last.
    Diagonal {
        /// How far above the main diagonal.
        offset: i64,
        /// The rows.
        dim1: usize,
        /// The columns.
        dim2: usize,
    },
}

impl Step {
    fn layout(&self, l: &Layout) -> Layout {
        match *self {
            Step::Select { dim, index } => l.select(dim, index),
            Step::Slice { dim, start, length, step } => l.slice(dim, start, length, step),
            Step::New(dim) => l.unsqueeze(dim),
            Step::Diagonal { offset, dim1, dim2 } => diagonal(l, offset, dim1, dim2),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Step::Select { .. } => "select",
            Step::Slice { .. } => "slice",
            Step::New(_) => "unsqueeze",
            Step::Diagonal { .. } => "diagonal",
        }
    }
}

/// Where the diagonal of a matrix begins (row, column) and how long it is.
pub(super) fn diagonal_span(rows: usize, columns: usize, offset: i64) -> (usize, usize, usize) {
    let skip = offset.unsigned_abs() as usize;
    if offset >= 0 { (0, skip, rows.min(columns.saturating_sub(skip))) } else { (skip, 0, rows.saturating_sub(skip).min(columns)) }
}

fn diagonal(l: &Layout, offset: i64, dim1: usize, dim2: usize) -> Layout {
    let (row, column, length) = diagonal_span(l.sizes()[dim1], l.sizes()[dim2], offset);
    let (a, b) = (l.strides()[dim1], l.strides()[dim2]);
    let start = if length == 0 { 0 } else { row * a as usize + column * b as usize };
    let kept = || (0..l.ndim()).filter(|&d| d != dim1 && d != dim2);
    let mut sizes: Dims = kept().map(|d| l.sizes()[d]).collect();
    let mut strides: SmallVec<[isize; 6]> = kept().map(|d| l.strides()[d]).collect();
    sizes.push(length);
    strides.push(a.saturating_add(b));
    // The diagonal stays where the matrix is: its strides reach no further.
    Layout::strided("diagonal", &sizes, &strides, l.offset() + start).unwrap_or_else(|_| l.clone())
}

/// A part of a tensor whose elements do not overlap where those of the whole do not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window(pub SmallVec<[Step; 4]>);

impl View for Window {
    const NAME: &'static str = "alias";

    fn name(&self) -> &'static str {
        self.0.last().map_or(Self::NAME, Step::name)
    }

    fn layout(&self, input: &Tensor) -> Result<Layout> {
        let mut steps = self.0.iter();
        let Some(first) = steps.next() else { return Ok(input.layout().clone()) };
        let mut layout = first.layout(input.layout());
        for step in steps {
            layout = step.layout(&layout);
        }
        Ok(layout)
    }

    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor> {
        if self.0.iter().all(|s| matches!(s, Step::New(_))) {
            return grad.reshape_to(&input.sizes);
        }
        embed(self.clone(), grad, &input.sizes)
    }
}

/// Zeros of a shape, but for the input in a window of them: the transpose of a view without overlap.
#[derive(Clone, Debug)]
pub struct Embed<V> {
    /// The window.
    pub view: V,
    /// The whole.
    pub sizes: Dims,
}

/// Carries out [`Embed`].
pub(crate) fn embed<V: View>(window: V, part: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    bind1(&Embed { view: window, sizes: Dims::from_slice(sizes) }, &[part])
}

impl<V: View> Embed<V> {
    fn put(&self, part: &Tensor, whole: &Tensor) -> Result<()> {
        let window = whole.alias_with(self.view.layout(whole)?, whole.dtype());
        crate::ops::copy_into(&window, part)
    }
}

impl<V: View> Primitive for Embed<V> {
    fn name(&self) -> &'static str {
        "embed"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&self.sizes)?, dtype: inputs[0].dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        zero_fill(&outputs[0])?;
        self.put(inputs[0], &outputs[0])
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let whole = Tensor::zeros(&self.sizes, inputs[0].dtype(), inputs[0].device())?;
        if !whole.device().is_meta() {
            self.put(inputs[0], &whole)?;
        }
        Ok(smallvec![whole])
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind1(&Viewed(self.view.clone()), &[&grad])?)])
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        let mut sizes = Dims::from_slice(&[batch.size]);
        sizes.extend_from_slice(&self.sizes);
        batch.on_inputs(&Embed { view: Lifted::new(&self.view), sizes })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An index counted from the end, when negative, as one counted from the start.
pub(crate) fn wrap_index(op: &str, index: i64, dim: usize, shape: &[usize]) -> Result<usize> {
    let size = shape[dim] as i64;
    if index < -size || index >= size {
        return Err(Error::index(format!(
            "{op}: index {index} is out of bounds for dimension {dim} with size {size} (index {index} out of range for tensor of size {} at dimension {dim})",
            show(shape)
        )));
    }
    Ok(if index < 0 { index + size } else { index } as usize)
}

/// The range that Python's slice rules give: start, length. `step` is at least 1.
pub(crate) fn slice_range(start: Option<i64>, stop: Option<i64>, step: i64, size: usize) -> (usize, usize) {
    let size = size as i64;
    let clamp = |i: i64| if i < 0 { i.saturating_add(size).max(0) } else { i.min(size) };
    let start = clamp(start.unwrap_or(0));
    let stop = clamp(stop.unwrap_or(size)).max(start);
    let span = stop - start;
    (start as usize, (span / step + (span % step != 0) as i64) as usize)
}

impl Tensor {
    /// The part at one index of a dimension, which is dropped. `IndexError` where the index is not there.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        if self.ndim() == 0 {
            return Err(Error::index("select: select() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim("select", dim, self.ndim())?;
        let index = wrap_index("select", index, dim, self.shape())?;
        view(Window(smallvec![Step::Select { dim, index }]), self)
    }

    /// The part from `start` to `stop` of a dimension, `step` apart, by Python's rules for slices.
    pub fn slice(&self, dim: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<Tensor> {
        if self.ndim() == 0 {
            return Err(Error::index("slice: slice() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim("slice", dim, self.ndim())?;
        if step <= 0 {
            return Err(Error::value(format!("slice: step must be greater than zero, got {step}")));
        }
        let (start, length) = slice_range(start, stop, step, self.shape()[dim]);
        view(Window(smallvec![Step::Slice { dim, start, length, step: step as usize }]), self)
    }

    /// `length` elements of a dimension from `start` on. `RuntimeError` where they are not all there.
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Tensor> {
        if self.ndim() == 0 {
            return Err(Error::runtime("narrow: narrow() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim("narrow", dim, self.ndim())?;
        let size = self.shape()[dim] as i64;
        if length < 0 {
            return Err(Error::runtime(format!("narrow: length must be non-negative, got {length}")));
        }
        if start < -size || start > size {
            return Err(Error::index(format!(
                "narrow: start out of range (expected to be in range of [{}, {size}], but got {start})",
                -size
            )));
        }
        let start = if start < 0 { start + size } else { start };
        if length > size - start {
            return Err(Error::runtime(format!("narrow: start ({start}) + length ({length}) exceeds dimension size ({size}).")));
        }
        view(Window(smallvec![Step::Slice { dim, start: start as usize, length: length as usize, step: 1 }]), self)
    }

    /// The diagonal `offset` above the main one of the matrices in `dim1` and `dim2`, as the last dimension.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let (a, b) = (wrap_dim("diagonal", dim1, self.ndim())?, wrap_dim("diagonal", dim2, self.ndim())?);
        if a == b {
            return Err(Error::runtime(format!(
                "diagonal: diagonal dimensions cannot be identical {dim1}, {dim2} (shape {})",
                show(self.shape())
            )));
        }
        view(Window(smallvec![Step::Diagonal { offset, dim1: a, dim2: b }]), self)
    }
}
