//! Other looks at the same memory.
//!
//! A view is a rule for layouts with its transpose for gradients ([`View`]); autograd, in-place writes
//! through it and the meta device follow. What cannot be a view of memory (`flip`, `repeat`, ...) and what
//! is made of views and copies stands here as well.

mod basic;
mod complex;
pub(crate) mod copies;
pub(crate) mod dims;
mod metadata;
mod part;
mod rearrange;
mod regroup;
mod repeat;
mod rows;
mod split;
mod strided;
mod triangle;
mod window;

pub use basic::*;
pub use complex::{AsComplex, AsReal, Retyped};
pub use part::{Conj, Imag, Neg, Real};
pub use regroup::infer_size;
pub use split::{Split, Unbind};
pub use strided::{AsStrided, Unfold};
pub use window::{Embed, Step, Window};
pub(crate) use window::{slice_range, wrap_index};

use super::{OutSpec, Outputs, Primitive};
use crate::Tensor;
use crate::autograd::{Cx, Grads, OutputInfo, ViewStep};
use crate::transform::forward::Tangents;
use crate::transform::vectorize::{Batch, batched_view};
use flambeau_base::{DType, Error, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[super::Op]] = &[
    rows::OPS,
    regroup::OPS,
    split::OPS,
    complex::OPS,
    part::OPS,
    strided::OPS,
    rearrange::OPS,
    repeat::OPS,
    triangle::OPS,
    metadata::OPS,
];

/// A view: a rule for layouts and its transpose for gradients.
pub trait View: Clone + Debug + Send + Sync + 'static {
    /// The name that errors and graphs show.
    const NAME: &'static str;

    /// [`View::NAME`], where a view has but one.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Whether it depends on more of the input's place in memory than its shape: a tangent lies elsewhere.
    const BY_STRIDES: bool = false;

    /// The layout of the result over the input's storage.
    fn layout(&self, input: &Tensor) -> Result<Layout>;

    /// The dtype of the result, where it is not the input's.
    fn dtype(&self, input: &Tensor) -> DType {
        input.dtype()
    }

    /// The bits of NOTE [lazy values] of the result, where they are not the input's.
    fn lazy(&self, input: &Tensor) -> u8 {
        input.lazy()
    }

    /// The gradient of the input, which looked like `input`.
    fn transpose(&self, grad: &Tensor, input: &OutputInfo) -> Result<Tensor>;
}

/// The primitive of a [`View`].
#[derive(Clone, Debug)]
pub struct Viewed<V>(pub V);

impl<V: View> Primitive for Viewed<V> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: self.0.layout(inputs[0])?, dtype: self.0.dtype(inputs[0]) }])
    }

    fn compute(&self, _: &[&Tensor], _: &[Tensor]) -> Result<()> {
        Err(computes_nothing(self.name()))
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let input = inputs[0];
        Ok(smallvec![input.alias_lazy(self.0.layout(input)?, self.0.dtype(input), self.0.lazy(input))])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(grad), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(self.0.transpose(&grad, info)?)])
    }

    fn jvp(&self, inputs: &[&Tensor], tangents: &Tangents) -> Result<Option<Tangents>> {
        let Some(t) = &tangents[0] else { return Ok(None) };
        // A tangent lies in memory as it came: where the view needs other strides, it is copied into the input's.
        let t = match self.0.layout(t) {
            Ok(_) => t.clone(),
            Err(_) if V::BY_STRIDES => return Ok(None),
            Err(_) => t.laid_out_as(inputs[0].layout())?,
        };
        Ok(Some(smallvec![Some(view(self.0.clone(), &t)?)]))
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batched_view(&self.0, batch)
    }

    fn is_view(&self) -> bool {
        true
    }

    fn view_step(&self, _: usize, before: Option<Arc<ViewStep>>) -> Option<Arc<ViewStep>> {
        Some(Arc::new(ViewStep { before, op: self.clone() }))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cold]
fn computes_nothing(op: &str) -> Error {
    Error::runtime(format!("{op}: a view computes nothing"))
}

/// Carries out a view.
pub fn view<V: View>(v: V, input: &Tensor) -> Result<Tensor> {
    crate::transform::bind1(&Viewed(v), &[input])
}

/// Writes zeros everywhere, without looking at gradients or versions.
pub(crate) fn zero_fill(target: &Tensor) -> Result<()> {
    let zero = Tensor::zeros(&[], target.dtype(), target.device())?;
    super::copy_into(target, &zero)
}
