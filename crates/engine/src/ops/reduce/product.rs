//! Products.

use super::{ReduceCx, ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::backend::Combine;
use crate::ops::Reads;
use crate::ops::nn::vjp_of;
use crate::ops::table::{Op, function};
use crate::transform::bind1;
use flambeau_base::{DType, Result};
use smallvec::{SmallVec, smallvec};

/// Product; integers and bool give `int64`.
static PROD: ReduceSpec = ReduceSpec {
    name: "prod",
    combine: Combine::Prod,
    map: |_, x| x,
    finish: |_, acc| smallvec![acc[0]],
    results: |d| smallvec![d],
    reads: Reads::INPUT,
    vjp: Some(|cx, grads| match grads[0].take() {
        Some(g) => gradient(cx, &g).map(Some),
        None => Ok(None),
    }),
};

/// From the product as a tree of pairs, so that zeros leave the others' products, also in derivatives of derivatives.
fn gradient(cx: &ReduceCx, g: &Tensor) -> Result<Tensor> {
    let x = cx.cx.input(0)?;
    let dtype = cx.op.dtype.unwrap_or(x.dtype());
    let f = |all: &[Tensor]| Ok(vec![tree(&all[0].to_dtype(dtype)?, cx.op)?.reshape_to(g.shape())?]);
    let found = vjp_of(&f, std::slice::from_ref(&x), &[true], &[Some(g.clone())])?.remove(0);
    found.map_or_else(|| x.zeros_like(), Ok)
}

fn tree(x: &Tensor, op: &Reduction) -> Result<Tensor> {
    let (kept, reduced): (Vec<i64>, Vec<i64>) = (0..x.ndim() as i64).partition(|&d| !op.reduces(d as usize));
    let order: Vec<i64> = kept.iter().chain(&reduced).copied().collect();
    let count: usize = reduced.iter().map(|&d| x.shape()[d as usize]).product();
    let rows: usize = kept.iter().map(|&d| x.shape()[d as usize]).product();
    let mut x = x.permute(&order)?.reshape_to(&[rows, count])?;
    let mut rest: Option<Tensor> = None;
    while x.shape()[1] > 1 {
        let (half, n) = (x.shape()[1] as i64 / 2, x.shape()[1] as i64);
        if n % 2 == 1 {
            let last = x.narrow(1, n - 1, 1)?;
            rest = Some(rest.map_or(Ok(last.clone()), |r| r.mul(&last))?);
        }
        x = x.narrow(1, 0, half)?.mul(&x.narrow(1, half, half)?)?;
    }
    match rest {
        Some(rest) => x.mul(&rest),
        None if count == 0 => Tensor::full(&[rows, 1], 1.0, x.dtype(), x.device())?.add(&x.sum()?),
        None => Ok(x),
    }
}

impl Tensor {
    /// Product over dimensions (all where none are given), in `dtype` where it is given; integers and bool give `int64`.
    pub fn prod_dims(&self, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.or_else(|| self.dtype().is_integral().then_some(DType::I64));
        let dims = dims_mask("prod", dims, self.ndim(), true)?;
        bind1(&Reduction { spec: &PROD, dims, keepdim, dtype, params: SmallVec::new() }, &[self])
    }

    /// Product of all elements.
    pub fn prod(&self) -> Result<Tensor> {
        self.prod_dims(None, false, None)
    }
}

pub(super) static OPS: &[Op] = &[
    function("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| Ok(a.tensor(0)?.prod_dims(None, false, a.opt_dtype(1)?)?.into()))
        .autocast_full()
        .doc("Product of all elements, in `dtype` where it is given; integers and bool give int64. The gradient is right also where elements are zero.")
        .samples(&["T(2,3)", "T(5), dtype=float64", "I(4; 1..3)"])
        .without_out(),
    function("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.prod_dims(Some(&[a.int(1)?]), a.bool(2)?, a.opt_dtype(3)?)?.into())
    })
    .autocast_full()
    .doc("Product along a dimension.")
    .samples(&["T(2,3), 1", "T(2,3,4), 0, True"]),
];
