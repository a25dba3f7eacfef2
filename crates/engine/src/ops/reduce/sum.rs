//! Sums and means.

use super::{ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::backend::Combine;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, function};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result};
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

/// Arithmetic mean; NaN of nothing.
static MEAN: ReduceSpec = ReduceSpec {
    name: "mean",
    combine: Combine::Sum,
    map: |_, x| x,
    finish: |k, acc| smallvec![k.div(acc[0], acc[1])],
    results: |d| smallvec![d],
    reads: Reads::NONE,
    vjp: Some(|cx, grads| match grads[0].take() {
        Some(g) => Ok(Some(cx.spread(&g)?.div(cx.count() as f64)?.expand(&cx.input_sizes())?)),
        None => Ok(None),
    }),
};

/// Sum in which NaN counts as zero.
static NANSUM: ReduceSpec = ReduceSpec {
    name: "nansum",
    combine: Combine::Sum,
    map: |k, x| {
        if k.dtype(x).is_integral() {
            return x;
        }
        let (bad, zero) = (k.is_nan(x), k.like(x, 0.0));
        k.select(bad, zero, x)
    },
    finish: |_, acc| smallvec![acc[0]],
    results: |d| smallvec![d],
    reads: Reads::INPUT,
    vjp: Some(|cx, grads| match grads[0].take() {
        Some(g) => {
            let x = cx.cx.input(0)?;
            Ok(Some(cx.spread(&g)?.expand_as(&x)?.masked_fill(&x.isnan()?, 0)?))
        }
        None => Ok(None),
    }),
};

/// How many elements are not zero.
static COUNT_NONZERO: ReduceSpec = ReduceSpec {
    name: "count_nonzero",
    combine: Combine::Sum,
    map: |k, x| {
        let zero = k.like(x, 0);
        let differs = k.ne(x, zero);
        k.convert(differs, DType::I64)
    },
    finish: |_, acc| smallvec![acc[0]],
    results: |_| smallvec![DType::I64],
    reads: Reads::NONE,
    vjp: None,
};

fn along(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
    let dims = dims_mask(spec.name, dims, x.ndim(), true)?;
    bind1(&Reduction { spec, dims, keepdim, dtype, params: SmallVec::new() }, &[x])
}

impl Tensor {
    /// Sum over dimensions (all of them where there are none), in `dtype` where it is given; integers and bool give `int64`.
    pub fn sum_dims(&self, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.or_else(|| self.dtype().is_integral().then_some(DType::I64));
        along(&SUM, self, dims, keepdim, dtype)
    }

    /// Sum of all elements.
    pub fn sum(&self) -> Result<Tensor> {
        self.sum_dims(None, false, None)
    }

    /// Mean over dimensions (all of them where there are none), in `dtype` where it is given.
    ///
    /// `NotImplementedError` for integers and bool without a `dtype`.
    pub fn mean_dims(&self, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let (what, wanted) = if dtype.is_some() { ("Optional", dtype) } else { ("Input", Some(self.dtype())) };
        if let Some(d) = wanted.filter(|d| d.is_integral()) {
            return Err(Error::not_implemented(format!(
                "mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. Got: {d}; pass dtype=float32 or convert first"
            )));
        }
        along(&MEAN, self, dims, keepdim, dtype)
    }

    /// Mean of all elements.
    pub fn mean(&self) -> Result<Tensor> {
        self.mean_dims(None, false, None)
    }

    /// Sum over dimensions in which NaN counts as zero.
    pub fn nansum_dims(&self, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.or_else(|| self.dtype().is_integral().then_some(DType::I64));
        along(&NANSUM, self, dims, keepdim, dtype)
    }

    /// How many elements are not zero, over dimensions.
    pub fn count_nonzero(&self, dims: Option<&[i64]>) -> Result<Tensor> {
        along(&COUNT_NONZERO, self, dims, false, None)
    }

    /// Sum over the dimensions that broadcasting `shape` to this shape would repeat.
    pub fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let lead = self.ndim() - shape.len();
        let dims: SmallVec<[i64; 6]> =
            (0..self.ndim()).filter(|&d| d < lead || (shape[d - lead] == 1 && self.shape()[d] != 1)).map(|d| d as i64).collect();
        let out = if dims.is_empty() { self.clone() } else { self.sum_dims(Some(&dims), true, None)? };
        out.reshape_to(shape)
    }
}

fn sum_to_size(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let size = crate::ops::create::sizes("sum_to_size", &a.ints(1)?)?;
    if !crate::ops::expandable(&size, x.shape()) {
        return Err(Error::runtime(format!(
            "sum_to_size: size {{{}}} is not expandable to size {{{}}}.",
            flambeau_base::show(&size),
            flambeau_base::show(x.shape())
        )));
    }
    // PyTorch gives a sum of its own for a scalar, though there is nothing to sum.
    Ok(if size.is_empty() { x.sum()? } else { x.sum_to(&size)? }.into())
}

fn nanmean(a: &Args) -> Result<Out> {
    let (x, dims, keepdim, dtype) = (a.tensor(0)?, a.opt_ints(1)?, a.bool(2)?, a.opt_dtype(3)?);
    if x.dtype().is_integral() {
        return Err(Error::not_implemented(format!(
            "nanmean(): expected input to have floating point or complex dtype but got {}",
            x.dtype()
        )));
    }
    let there = x.alias().isnan()?.logical_not()?.sum_dims(dims.as_deref(), keepdim, None)?;
    Ok(x.nansum_dims(dims.as_deref(), keepdim, dtype)?.div(&there)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| Ok(a.tensor(0)?.sum_dims(None, false, a.opt_dtype(1)?)?.into()))
        .doc("Sum of all elements, in `dtype` where it is given; integers and bool give int64.")
        .samples(&["T(2,3)", "T(2,3), dtype=float64", "I(4; 0..3)", "B(3)"])
        .without_out(),
    function("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.sum_dims(a.opt_ints(1)?.as_deref(), a.bool(2)?, a.opt_dtype(3)?)?.into())
    })
    .doc("Sum over dimensions, in `dtype` where it is given; integers and bool give int64.")
    .samples(&["T(2,3), 1", "T(2,3,4), [0, -1], True", "T(2,3), 0, dtype=float64"]),
    function("sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size)
        .places(super::super::table::place::METHOD)
        .without_out()
        .doc("Sum over the dimensions that broadcasting `size` to the shape of `self` would repeat. A RuntimeError where it would not.")
        .samples(&["T(2,3), [1, 3]", "T(2,3,4), [3, 1]"]),
    function("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.mean_dims(None, false, a.opt_dtype(1)?)?.into())
    })
    .doc("Mean of all elements; NaN of nothing. Integers need a floating point `dtype`.")
    .samples(&["T(2,3)", "I(4; 0..3), dtype=float32"])
    .without_out(),
    function("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.mean_dims(a.opt_ints(1)?.as_deref(), a.bool(2)?, a.opt_dtype(3)?)?.into())
    })
    .doc("Mean over dimensions; NaN of nothing. Integers need a floating point `dtype`.")
    .samples(&["T(2,3), 1", "T(2,3,4), [0, -1], True"]),
    function("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.nansum_dims(a.opt_ints(1)?.as_deref(), a.bool(2)?, a.opt_dtype(3)?)?.into())
    })
    .doc("Sum over dimensions (all unless given) in which NaN counts as zero.")
    .samples(&["T(2,3)", "T(2,3), 1, True"]),
    function("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", nanmean)
        .doc("Mean over dimensions (all unless given) of the elements that are not NaN.")
        .samples(&["T(2,3)", "T(2,3), 1, True"]),
    function("count_nonzero(Tensor self, int? dim=None) -> Tensor", |a| {
        let dim = a.opt_int(1)?;
        Ok(a.tensor(0)?.count_nonzero(dim.as_ref().map(std::slice::from_ref))?.into())
    })
    .doc("How many elements are not zero, in all or along a dimension; int64.")
    .samples(&["T(2,3)", "I(2,3; 0..2), 1"]),
    function("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", |a| Ok(a.tensor(0)?.count_nonzero(Some(&a.ints(1)?))?.into()))
        .doc("How many elements are not zero, over dimensions; int64.")
        .samples(&["I(2,3; 0..2), [0, 1]"]),
];
