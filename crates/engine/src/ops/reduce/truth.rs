//! Whether any or all elements are not zero, and comparisons of whole tensors.

use super::{ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::backend::Combine;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Result};
use smallvec::{SmallVec, smallvec};

/// uint8 stood for bool once, and still gives itself.
fn truth(d: DType) -> SmallVec<[DType; 1]> {
    smallvec![if d == DType::U8 { d } else { DType::Bool }]
}

static ANY: ReduceSpec = ReduceSpec {
    name: "any",
    combine: Combine::Any,
    map: |_, x| x,
    finish: |_, acc| smallvec![acc[0]],
    results: truth,
    reads: Reads::NONE,
    vjp: None,
};

static ALL: ReduceSpec = ReduceSpec {
    name: "all",
    combine: Combine::All,
    map: |_, x| x,
    finish: |_, acc| smallvec![acc[0]],
    results: truth,
    reads: Reads::NONE,
    vjp: None,
};

fn along(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    // No dimensions at all leave each element's truth.
    let dims = dims_mask(spec.name, dims, x.ndim(), false)?;
    bind1(&Reduction { spec, dims, keepdim, dtype: None, params: SmallVec::new() }, &[x])
}

impl Tensor {
    /// Whether any element is not zero, over dimensions (all where none are given).
    pub fn any_dims(&self, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        along(&ANY, self, dims, keepdim)
    }

    /// Whether no element is zero, over dimensions (all where none are given).
    pub fn all_dims(&self, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        along(&ALL, self, dims, keepdim)
    }

    /// Whether any element is not zero.
    pub fn any(&self) -> Result<Tensor> {
        self.any_dims(None, false)
    }

    /// Whether no element is zero.
    pub fn all(&self) -> Result<Tensor> {
        self.all_dims(None, false)
    }

    /// Whether both have one shape and the same values; NaN equals nothing.
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        if self.shape() != other.shape() {
            return Ok(false);
        }
        let alike = self.alias().eq(&other.alias())?;
        if alike.device().is_meta() {
            return Err(Error::not_implemented("equal: tensors on the meta device have no values"));
        }
        Ok(alike.all()?.item()?.to_bool())
    }

    /// Which elements differ by at most `atol + rtol * |other|`; infinities must be equal, NaN equals NaN where asked for.
    ///
    /// `RuntimeError` where dtypes differ or a tolerance is negative.
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<Tensor> {
        if self.dtype() != other.dtype() {
            return Err(Error::runtime(format!(
                "isclose: {} did not match {}; convert one of them with .to()",
                self.dtype(),
                other.dtype()
            )));
        }
        for (name, tolerance) in [("rtol", rtol), ("atol", atol)] {
            if tolerance.is_nan() || tolerance < 0.0 {
                return Err(Error::runtime(format!("isclose: {name} must be greater than or equal to zero, but got {tolerance}")));
            }
        }
        let (a, b) = (self.alias(), other.alias());
        let mut close = a.eq(&b)?;
        if equal_nan && a.dtype().is_float() {
            close = close.logical_or(&a.isnan()?.logical_and(&b.isnan()?)?)?;
        }
        if rtol == 0.0 && atol == 0.0 {
            return Ok(close);
        }
        let wide = |t: Tensor| if t.dtype().is_integral() { t.to_dtype(DType::F64) } else { Ok(t) };
        let (a, b) = (wide(a)?, wide(b)?);
        let allowed = b.abs()?.mul(rtol)?.add(atol)?;
        let error = a.sub(&b)?.abs()?;
        let near = error.isfinite()?.logical_and(&error.le(&allowed)?)?;
        close.logical_or(&near)
    }

    /// Whether [`Tensor::isclose`] holds everywhere.
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
        Ok(self.isclose(other, rtol, atol, equal_nan)?.all()?.item()?.to_bool())
    }
}

fn isclose(a: &Args) -> Result<Tensor> {
    a.tensor(0)?.isclose(a.tensor(1)?, a.float(2)?, a.float(3)?, a.bool(4)?)
}

pub(super) static OPS: &[Op] = &[
    function("any(Tensor self) -> Tensor", |a| Ok(a.tensor(0)?.any()?.into()))
        .doc("Whether any element is not zero; bool (uint8 gives uint8).")
        .samples(&["T(2,3)", "B(2,3)", "I(4; 0..2)"]),
    function("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.any_dims(Some(&[a.int(1)?]), a.bool(2)?)?.into())
    })
    .doc("Whether any element along a dimension is not zero.")
    .samples(&["B(2,3), 1", "T(2,3), 0, True"]),
    function("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.any_dims(a.opt_ints(1)?.as_deref(), a.bool(2)?)?.into())
    })
    .doc("Whether any element over dimensions is not zero; an empty list leaves each element's truth.")
    .samples(&["B(2,3,2), [0, 2]", "B(2,3), None, True"]),
    function("all(Tensor self) -> Tensor", |a| Ok(a.tensor(0)?.all()?.into()))
        .doc("Whether no element is zero; bool (uint8 gives uint8).")
        .samples(&["T(2,3)", "B(2,3)", "I(4; 0..2)"]),
    function("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.all_dims(Some(&[a.int(1)?]), a.bool(2)?)?.into())
    })
    .doc("Whether no element along a dimension is zero.")
    .samples(&["B(2,3), 1", "T(2,3), 0, True"]),
    function("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.all_dims(a.opt_ints(1)?.as_deref(), a.bool(2)?)?.into())
    })
    .doc("Whether no element over dimensions is zero; an empty list leaves each element's truth.")
    .samples(&["B(2,3,2), [0, 2]", "B(2,3), None, True"]),
    function("equal(Tensor self, Tensor other) -> bool", |a| Ok(Out::Bool(a.tensor(0)?.equal(a.tensor(1)?)?)))
        .doc("Whether both have one shape and the same values; NaN equals nothing.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3)"])
        .without_out(),
    function("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor", |a| {
        Ok(isclose(a)?.into())
    })
    .doc("Which elements differ by at most `atol + rtol * |other|`; infinities must be equal, NaN equals NaN where asked for.")
    .samples(&["T(2,3), T(2,3)", "I(3; 0..4), I(3; 0..4), 0.0, 1.0"])
    .without_out(),
    function("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool", |a| {
        Ok(Out::Bool(isclose(a)?.all()?.item()?.to_bool()))
    })
    .doc("Whether `isclose` holds everywhere.")
    .places(place::TORCH | place::METHOD)
    .samples(&["T(2,3), T(2,3)"])
    .without_out(),
];
