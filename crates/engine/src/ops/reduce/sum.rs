//! Sums and means.

use super::{ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::backend::Combine;
use crate::ops::Reads;
use crate::transform::bind1;
use flambeau_base::{DType, Result};
use smallvec::{SmallVec, smallvec};

/// Sum; integers and bool give `int64`.
pub static SUM: ReduceSpec = ReduceSpec {
    name: "sum",
    combine: Combine::Sum,
    map: |_, x| x,
    finish: |_, acc| smallvec![acc[0]],
    results: |d| smallvec![d],
    reads: Reads::NONE,
    vjp: Some(|cx, grads| match grads[0].take() {
        Some(g) => Ok(Some(cx.spread(&g)?.expand(&cx.input_sizes())?)),
        None => Ok(None),
    }),
};

impl Tensor {
    /// Sum over dimensions (all of them where there are none), in `dtype` where it is given; integers and bool give `int64`.
    pub fn sum_dims(&self, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.or_else(|| self.dtype().is_integral().then_some(DType::I64));
        let dims = dims_mask("sum", dims, self.ndim(), true)?;
        bind1(&Reduction { spec: &SUM, dims, keepdim, dtype, params: SmallVec::new() }, &[self])
    }

    /// Sum of all elements.
    pub fn sum(&self) -> Result<Tensor> {
        self.sum_dims(None, false, None)
    }

    /// Sum over the dimensions that broadcasting `shape` to this shape would repeat.
    pub fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let lead = self.ndim() - shape.len();
        let dims: SmallVec<[i64; 6]> =
            (0..self.ndim()).filter(|&d| d < lead || (shape[d - lead] == 1 && self.shape()[d] != 1)).map(|d| d as i64).collect();
        let out = if dims.is_empty() { self.clone() } else { self.sum_dims(Some(&dims), true, Some(self.dtype()))? };
        out.reshape_to(shape)
    }
}
