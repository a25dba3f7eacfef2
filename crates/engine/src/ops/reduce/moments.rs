//! Variance and standard deviation.

use super::{ReduceCx, ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::backend::Combine;
use crate::ops::table::{Args, Op, Out, function};
use crate::ops::{Outputs, Reads};
use crate::transform::{bind, bind1};
use flambeau_base::{Error, Result, Scalar};
use flambeau_ir::{Body, Val};
use smallvec::{SmallVec, smallvec};

/// Squared deviations over the number of elements less the correction, which does not fall below zero.
fn variance(k: &mut Body, acc: &[Val]) -> Val {
    let (zero, left) = (k.like(acc[0], 0.0), k.sub(acc[2], acc[3]));
    let left = k.maximum(left, zero);
    k.div(acc[1], left)
}

/// The mean; that of nothing is NaN, which 0 / 0 gives.
fn mean(k: &mut Body, acc: &[Val]) -> Val {
    let one = k.div(acc[2], acc[2]);
    k.mul(acc[0], one)
}

macro_rules! moments {
    ($($id:ident $name:literal $finish:expr, $results:expr, $reads:expr, $vjp:expr;)*) => {$(
        static $id: ReduceSpec = ReduceSpec {
            name: $name,
            combine: Combine::Moments,
            map: |_, x| x,
            finish: $finish,
            results: $results,
            reads: $reads,
            vjp: Some($vjp),
        };
    )*};
}
moments! {
    VAR "var" |k, acc| smallvec![variance(k, acc)], |d| smallvec![d], Reads::INPUT, |cx, grads| {
        grads[0].take().map(|g| of_variance(cx, &g)).transpose()
    };
    STD "std" |k, acc| { let v = variance(k, acc); smallvec![k.sqrt(v)] }, |d| smallvec![d], Reads::both(1, 1), |cx, grads| {
        grads[0].take().map(|g| of_variance(cx, &of_root(cx, &g)?)).transpose()
    };
    VAR_MEAN "var_mean" |k, acc| smallvec![variance(k, acc), mean(k, acc)], |d| smallvec![d, d], Reads::INPUT, |cx, grads| {
        let first = grads[0].take().map(|g| of_variance(cx, &g)).transpose()?;
        both(first, grads[1].take().map(|g| of_mean(cx, &g)).transpose()?)
    };
    STD_MEAN "std_mean" |k, acc| { let v = variance(k, acc); smallvec![k.sqrt(v), mean(k, acc)] }, |d| smallvec![d, d], Reads::both(1, 1), |cx, grads| {
        let first = grads[0].take().map(|g| of_variance(cx, &of_root(cx, &g)?)).transpose()?;
        both(first, grads[1].take().map(|g| of_mean(cx, &g)).transpose()?)
    };
}

fn both(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    match (a, b) {
        (Some(a), Some(b)) => a.add(&b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

fn of_variance(cx: &ReduceCx, g: &Tensor) -> Result<Tensor> {
    let x = cx.cx.input(0)?;
    let left = (cx.count() as f64 - cx.op.params[0].to_f64()).max(0.0);
    let deviation = x.sub(&x.mean_dims(Some(&cx.op.dims_list(x.ndim())), true, None)?)?;
    cx.spread(g)?.mul(&deviation.mul(2.0 / left)?)
}

/// The gradient of the variance for that of its root; zero where the root is.
fn of_root(cx: &ReduceCx, g: &Tensor) -> Result<Tensor> {
    let root = cx.cx.output(0)?;
    g.div(&root.mul(2.0)?)?.masked_fill(&root.alias().eq(0)?, 0)
}

fn of_mean(cx: &ReduceCx, g: &Tensor) -> Result<Tensor> {
    cx.spread(g)?.div(cx.count() as f64)?.expand(&cx.input_sizes())
}

fn reduction(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Reduction> {
    if !x.dtype().is_float() {
        return Err(Error::not_implemented(format!(
            "{}: std and var only support floating point and complex dtypes, got {}",
            spec.name,
            x.dtype()
        )));
    }
    let dims = dims_mask(spec.name, dims, x.ndim(), true)?;
    Ok(Reduction { spec, dims, keepdim, dtype: None, params: smallvec![Scalar::Float(correction)] })
}

/// The results of a reduction; of complex numbers from those of their parts.
fn moments(spec: &'static ReduceSpec, x: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Outputs> {
    if !x.dtype().is_complex() {
        return bind(&reduction(spec, x, dims, correction, keepdim)?, &[x]);
    }
    let of = |part: Tensor| bind1(&reduction(&VAR, &part, dims, correction, keepdim)?, &[&part]);
    let variance = of(x.real()?)?.add(&of(x.imag()?)?)?;
    let first = if spec.name.starts_with("std") { variance.sqrt()? } else { variance };
    if !spec.name.ends_with("mean") {
        return Ok(smallvec![first]);
    }
    Ok(smallvec![first, x.mean_dims(dims, keepdim, None)?])
}

impl Tensor {
    /// Variance over dimensions (all where none are given): squared deviations over the number of elements less `correction`.
    pub fn var(&self, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        Ok(moments(&VAR, self, dims, correction, keepdim)?.remove(0))
    }

    /// Standard deviation over dimensions (all where none are given).
    pub fn std(&self, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        Ok(moments(&STD, self, dims, correction, keepdim)?.remove(0))
    }

    /// Variance and mean over dimensions (all where none are given), in one pass.
    pub fn var_mean(&self, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let mut found = moments(&VAR_MEAN, self, dims, correction, keepdim)?;
        let mean = found.remove(1);
        Ok((found.remove(0), mean))
    }
}

/// The three signatures of these operations: their dimensions, correction and `keepdim`.
fn plain(a: &Args) -> Result<(Option<SmallVec<[i64; 6]>>, f64, bool)> {
    Ok((None, a.bool(1)? as u8 as f64, false))
}

fn with_dim(a: &Args) -> Result<(Option<SmallVec<[i64; 6]>>, f64, bool)> {
    Ok((a.opt_ints(1)?, a.bool(2)? as u8 as f64, a.bool(3)?))
}

fn corrected(a: &Args) -> Result<(Option<SmallVec<[i64; 6]>>, f64, bool)> {
    Ok((a.opt_ints(1)?, a.opt_scalar(2)?.map_or(1.0, Scalar::to_f64), a.bool(3)?))
}

type Form = fn(&Args) -> Result<(Option<SmallVec<[i64; 6]>>, f64, bool)>;

fn call(spec: &'static ReduceSpec, form: Form, a: &Args) -> Result<Out> {
    let (dims, correction, keepdim) = form(a)?;
    let x = a.tensor(0)?;
    let mut found = moments(spec, x, dims.as_deref(), correction, keepdim)?;
    Ok(if found.len() == 1 { found.remove(0).into() } else { Out::Tuple(found.into_iter().collect()) })
}

pub(super) static OPS: &[Op] = &[
    function("var(Tensor self, bool unbiased=True) -> Tensor", |a| call(&VAR, plain, a))
        .doc("Variance of all elements: squared deviations over their number less one, or over their number if not `unbiased`.")
        .samples(&["T(2,3)", "T(2,3), False"])
        .without_out(),
    function("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |a| call(&VAR, with_dim, a))
        .doc("Variance over dimensions.")
        .samples(&["T(2,3), 1", "T(2,3,4), [0, 2], False, True"]),
    function("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |a| {
        call(&VAR, corrected, a)
    })
    .doc("Variance over dimensions: squared deviations over the number of elements less `correction` (1 unless given).")
    .samples(&["T(2,3), correction=0", "T(2,3), 1, correction=0.5, keepdim=True"]),
    function("std(Tensor self, bool unbiased=True) -> Tensor", |a| call(&STD, plain, a))
        .doc("Standard deviation of all elements: the root of `var`.")
        .samples(&["T(2,3)", "T(2,3), False"])
        .without_out(),
    function("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", |a| call(&STD, with_dim, a))
        .doc("Standard deviation over dimensions.")
        .samples(&["T(2,3), 1", "T(2,3,4), [0, 2], False, True"]),
    function("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", |a| {
        call(&STD, corrected, a)
    })
    .doc("Standard deviation over dimensions, with a correction as in `var`.")
    .samples(&["T(2,3), correction=0", "T(2,3), 1, correction=0.5, keepdim=True"]),
    function("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |a| call(&VAR_MEAN, plain, a))
        .doc("Variance and mean of all elements, in one pass.")
        .samples(&["T(2,3)"])
        .without_out(),
    function("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |a| {
        call(&VAR_MEAN, with_dim, a)
    })
    .doc("Variance and mean over dimensions.")
    .samples(&["T(2,3), 1", "T(2,3), [0], False, True"])
    .without_out(),
    function(
        "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        |a| call(&VAR_MEAN, corrected, a),
    )
    .doc("Variance and mean over dimensions, with a correction as in `var`.")
    .samples(&["T(2,3), 1, correction=0"])
    .without_out(),
    function("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", |a| call(&STD_MEAN, plain, a))
        .doc("Standard deviation and mean of all elements, in one pass.")
        .samples(&["T(2,3)"])
        .without_out(),
    function("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", |a| {
        call(&STD_MEAN, with_dim, a)
    })
    .doc("Standard deviation and mean over dimensions.")
    .samples(&["T(2,3), 1", "T(2,3), [0], False, True"])
    .without_out(),
    function(
        "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
        |a| call(&STD_MEAN, corrected, a),
    )
    .doc("Standard deviation and mean over dimensions, with a correction as in `var`.")
    .samples(&["T(2,3), 1, correction=0"])
    .without_out(),
];
