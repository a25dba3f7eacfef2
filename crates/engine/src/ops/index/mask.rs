//! Where a tensor is not zero, and elements chosen by masks.

use super::{Address, pick};
use crate::Tensor;
use crate::backend::{Operand as Memory, backend};
use crate::ops::table::{Args, Op, Out, function, place, view_row};
use crate::ops::{OutSpec, Outputs, Primitive};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result, broadcast};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The places where a tensor is not zero, in row-major order, as `int64`: a row of indices for each, or its number in
/// row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NonZero {
    /// Numbers in row-major order instead of rows of indices.
    pub linear: bool,
}

impl Primitive for NonZero {
    fn name(&self) -> &'static str {
        "nonzero"
    }

    fn infer(&self, _: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Err(Error::not_implemented("nonzero: the shape of the result depends on values, which the meta device does not have"))
    }

    fn compute(&self, _: &[&Tensor], _: &[Tensor]) -> Result<()> {
        Err(Error::runtime("nonzero: the result is allocated as it is computed"))
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let t = inputs[0];
        if t.device().is_meta() {
            return self.infer(inputs).map(|_| Outputs::new());
        }
        let mut out = None;
        let mut make = |n: usize| -> Result<*mut i64> {
            let fresh = if self.linear { Tensor::empty(&[n], DType::I64, t.device())? } else { Tensor::empty(&[n, t.ndim()], DType::I64, t.device())? };
            let ptr = fresh.data_ptr_mut()?.cast();
            out = Some(fresh);
            Ok(ptr)
        };
        let memory = Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides: t.strides() };
        // SAFETY: the layout stays inside the storage; the memory is fresh and holds so many indices.
        unsafe { backend(t.device())?.nonzero(t.shape(), memory, self.linear, &mut make)? };
        Ok(out.into_iter().collect())
    }

    fn differentiable(&self, _: usize) -> bool {
        false
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Carries out [`NonZero`].
pub(super) fn nonzero(t: &Tensor, linear: bool) -> Result<Tensor> {
    bind1(&NonZero { linear }, &[t])
}
