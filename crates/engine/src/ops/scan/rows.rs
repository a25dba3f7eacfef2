//! Running sums, products and extremes, and differences.

use super::{ScanKind, scanned};
use crate::Tensor;
use crate::ops::join::cat;
use crate::ops::table::{Args, Op, Out, function};
use flambeau_base::{DType, Error, Result};
use smallvec::smallvec;

impl Tensor {
    /// Running sum along a dimension, in `dtype` where it is given; integers and bool give `int64`.
    pub fn cumsum(&self, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        totals(ScanKind::Sum, self, dim, dtype)
    }

    /// Running product along a dimension, in `dtype` where it is given; integers and bool give `int64`.
    pub fn cumprod(&self, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        totals(ScanKind::Prod, self, dim, dtype)
    }

    /// The largest element so far along a dimension and its last place; NaN once there was one.
    pub fn cummax(&self, dim: i64) -> Result<(Tensor, Tensor)> {
        extreme(ScanKind::Max, self, dim)
    }

    /// The smallest element so far along a dimension and its last place; NaN once there was one.
    pub fn cummin(&self, dim: i64) -> Result<(Tensor, Tensor)> {
        extreme(ScanKind::Min, self, dim)
    }

    /// `log(cumsum(exp(x)))` along a dimension, computed stably.
    pub fn logcumsumexp(&self, dim: i64) -> Result<Tensor> {
        Ok(scanned(ScanKind::LogSumExp, self, dim)?.remove(0))
    }

    /// Differences of neighbours along a dimension, taken `n` times.
    ///
    /// `RuntimeError` for a scalar or a negative `n`.
    pub fn diff(&self, n: i64, dim: i64) -> Result<Tensor> {
        if self.ndim() == 0 {
            return Err(Error::runtime("diff expects input to be at least one-dimensional"));
        }
        if n < 0 {
            return Err(Error::runtime(format!("diff: order must be non-negative but got {n}")));
        }
        let d = flambeau_base::wrap_dim("diff", dim, self.ndim())?;
        let mut x = self.clone();
        for _ in 0..n {
            let len = x.shape()[d] as i64;
            if len == 0 {
                break;
            }
            let (later, earlier) = (x.narrow(dim, 1, len - 1)?, x.narrow(dim, 0, len - 1)?);
            x = if x.dtype() == DType::Bool { later.ne(&earlier)? } else { later.sub(&earlier)? };
        }
        if n == 0 { self.copy() } else { Ok(x) }
    }
}

/// Running sums or products in a dtype. Integers are counted in 64 bits, of which a narrower dtype keeps the last.
fn totals(kind: ScanKind, x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(if x.dtype().is_integral() { DType::I64 } else { x.dtype() });
    let x = x.to_dtype(dtype)?;
    let x = if dtype.is_integral() && dtype != DType::I64 { x.to_dtype(DType::I64)? } else { x };
    scanned(kind, &x, dim)?.remove(0).to_dtype(dtype)
}

fn extreme(kind: ScanKind, x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    let mut found = scanned(kind, x, dim)?;
    let places = found.remove(1);
    Ok((found.remove(0), places))
}

fn pair(found: (Tensor, Tensor)) -> Result<Out> {
    Ok(Out::Tuple(smallvec![found.0, found.1]))
}

fn diff(a: &Args) -> Result<Out> {
    let (x, n, dim) = (a.tensor(0)?, a.int(1)?, a.int(2)?);
    let pieces: Vec<&Tensor> = [a.opt_tensor(3)?, Some(x), a.opt_tensor(4)?].into_iter().flatten().collect();
    if pieces.len() == 1 || n <= 0 || x.ndim() == 0 {
        return Ok(x.diff(n, dim)?.into());
    }
    Ok(cat(&pieces, dim)?.diff(n, dim)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.cumsum(a.int(1)?, a.opt_dtype(2)?)?.into())
    })
    .doc("Running sum along `dim`, in `dtype` where it is given; integers and bool give int64.")
    .samples(&["T(2,3), 1", "T(2,3,4), 0", "I(4; 0..5), 0", "T(3), -1, dtype=float64"])
    .with_inplace(),
    function("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.cumprod(a.int(1)?, a.opt_dtype(2)?)?.into())
    })
    .doc("Running product along `dim`, in `dtype` where it is given; integers and bool give int64. The gradient is right also where elements are zero.")
    .samples(&["T(2,3), 1", "T(2,3,4), 0", "I(4; 1..3), 0"])
    .with_inplace(),
    function("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", |a| pair(a.tensor(0)?.cummax(a.int(1)?)?))
        .doc("The largest element so far along `dim` and its last place; NaN once there was one.")
        .samples(&["T(2,3), 1", "T(2,3,4), 0"]),
    function("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", |a| pair(a.tensor(0)?.cummin(a.int(1)?)?))
        .doc("The smallest element so far along `dim` and its last place; NaN once there was one.")
        .samples(&["T(2,3), 1", "T(2,3,4), 0"]),
    function("logcumsumexp(Tensor self, int dim) -> Tensor", |a| Ok(a.tensor(0)?.logcumsumexp(a.int(1)?)?.into()))
        .doc("`log(cumsum(exp(x)))` along `dim`, computed stably.")
        .samples(&["T(2,3), 1", "T(2,3,4), 0"]),
    function("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", diff)
        .doc("Differences of neighbours along `dim`, taken `n` times, after `prepend` and `append` are joined on.")
        .samples(&["T(5)", "T(2,5), 2, 1", "T(2,5), 1, 0, T(1,5), T(2,5)"]),
];
