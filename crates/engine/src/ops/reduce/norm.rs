//! Norms of vectors, without overflow or underflow on the way.

use super::{ReduceSpec, Reduction, dims_mask};
use crate::Tensor;
use crate::autograd::{Cx, Grads, no_grad};
use crate::backend::Combine;
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads, copy_into};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Error, Result, Scalar};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

macro_rules! sums {
    ($($id:ident $name:literal |$k:ident, $x:ident| $map:expr, $finish:expr;)*) => {$(
        static $id: ReduceSpec = ReduceSpec {
            name: $name,
            combine: Combine::Sum,
            map: |$k, $x| $map,
            finish: $finish,
            results: |d| smallvec![d],
            reads: Reads::NONE,
            vjp: None,
        };
    )*};
}
sums! {
    SQUARES "vector_norm" |k, x| k.mul(x, x), |k, acc| smallvec![k.sqrt(acc[0])];
    SIZES "vector_norm" |k, x| k.abs(x), |_, acc| smallvec![acc[0]];
}

/// The norm of some order over some dimensions.
#[derive(Clone, Copy, Debug)]
pub struct VectorNorm {
    order: f64,
    dims: u64,
    keepdim: bool,
}

impl VectorNorm {
    fn reduce(&self, spec: &'static ReduceSpec, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        bind1(&Reduction { spec, dims: self.dims, keepdim: true, dtype, params: SmallVec::new() }, &[x])
    }

    fn dims_list(&self, ndim: usize) -> SmallVec<[i64; 6]> {
        (0..ndim as i64).filter(|d| self.dims >> d & 1 != 0).collect()
    }

    /// The norms, with the reduced dimensions kept as 1.
    fn values(&self, x: &Tensor) -> Result<Tensor> {
        let dims = self.dims_list(x.ndim());
        match self.order {
            0.0 => x.ne(0)?.sum_dims(Some(&dims), true, Some(x.dtype())),
            1.0 => self.reduce(&SIZES, x, None),
            2.0 => self.euclidean(x),
            f64::INFINITY => x.abs()?.amax(Some(&dims), true),
            f64::NEG_INFINITY => x.abs()?.amin(Some(&dims), true),
            order => self.general(&x.abs()?, order, &dims),
        }
    }

    /// Squares of anything narrower than `float64` neither overflow nor vanish in `float64`.
    fn euclidean(&self, x: &Tensor) -> Result<Tensor> {
        let plain = self.reduce(&SQUARES, x, Some(DType::F64))?;
        if x.dtype() != DType::F64 {
            return plain.to_dtype(x.dtype());
        }
        let odd = plain.lt(1e-140)?.logical_or(&plain.gt(1e150)?)?;
        if !odd.any()?.item()?.to_bool() {
            return Ok(plain);
        }
        let scale = self.scale(&x.abs()?, true, &self.dims_list(x.ndim()))?;
        self.reduce(&SQUARES, &x.div(&scale)?, None)?.mul(&scale)
    }

    /// The largest (or smallest) magnitude, or 1 where that is 0 or not finite.
    fn scale(&self, sizes: &Tensor, largest: bool, dims: &[i64]) -> Result<Tensor> {
        if sizes.numel() == 0 {
            return Tensor::full(&[], 1.0, sizes.dtype(), sizes.device());
        }
        let most = if largest { sizes.amax(Some(dims), true)? } else { sizes.amin(Some(dims), true)? };
        let usable = most.gt(0)?.logical_and(&most.isfinite()?)?;
        Tensor::where_(&usable, &most, 1)
    }

    fn general(&self, sizes: &Tensor, order: f64, dims: &[i64]) -> Result<Tensor> {
        let scale = self.scale(sizes, order > 0.0, dims)?;
        let sum = sizes.div(&scale)?.pow(order)?.sum_dims(Some(dims), true, None)?;
        sum.pow(1.0 / order)?.mul(&scale)
    }

    /// The gradient, from norms and their gradients with the reduced dimensions kept as 1.
    fn gradient(&self, g: &Tensor, x: &Tensor, norm: &Tensor) -> Result<Tensor> {
        let none = norm.alias().eq(0)?;
        match self.order {
            0.0 => x.zeros_like(),
            1.0 => g.mul(&x.sign()?),
            2.0 => x.div(norm)?.masked_fill(&none, 0)?.mul(g),
            order if order.is_infinite() => {
                let chosen = Tensor::where_(&norm.alias().isnan()?, &x.alias().isnan()?, &x.alias().abs()?.eq(&norm.alias())?)?;
                let count = chosen.sum_dims(Some(&self.dims_list(x.ndim())), true, Some(x.dtype()))?;
                x.sign()?.mul(&chosen.to_dtype(x.dtype())?)?.mul(&g.div(&count)?)
            }
            order => {
                // (|x| / norm)^(order - 1): quotients neither overflow nor vanish before the power.
                let rest = x.abs()?.div(norm)?.pow(order - 1.0)?;
                let rest = if order < 1.0 { rest.masked_fill(&x.alias().eq(0)?, 0)? } else { rest };
                x.sign()?.mul(&rest)?.masked_fill(&none, 0)?.mul(g)
            }
        }
    }
}

impl Primitive for VectorNorm {
    fn name(&self) -> &'static str {
        "vector_norm"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        let shape = Reduction { spec: &SIZES, dims: self.dims, keepdim: self.keepdim, dtype: None, params: SmallVec::new() };
        shape.infer(&[x])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let _guard = no_grad();
        copy_into(&outputs[0], &self.values(&inputs[0].alias())?.reshape_to(outputs[0].shape())?)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        let x = cx.input(0)?;
        let kept: SmallVec<[usize; 6]> = x.shape().iter().enumerate().map(|(d, &n)| if self.dims >> d & 1 != 0 { 1 } else { n }).collect();
        Ok(smallvec![Some(self.gradient(&g.reshape_to(&kept)?, &x, &cx.output(0)?.reshape_to(&kept)?)?)])
    }

    fn reads(&self) -> Reads {
        Reads::both(1, 1)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if self.dims == 0 {
            // No dimensions would mean all of them.
            return Ok(None);
        }
        batch.on_inputs(&VectorNorm { dims: self.dims << 1, ..*self })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn check(x: &Tensor, order: f64, dims: Option<&[i64]>, mask: u64, dtype: Option<DType>) -> Result<()> {
    let op = "linalg.vector_norm";
    if x.dtype().is_integral() {
        return Err(Error::not_implemented(format!("{op}: Expected a floating point or complex tensor as input. Got {}", x.dtype())));
    }
    if let Some(d) = dtype
        && (d.is_integral() || x.dtype().promote(d)? != d)
    {
        return Err(Error::runtime(format!(
            "{op}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({d})",
            x.dtype()
        )));
    }
    if x.numel() > 0 || !(order < 0.0 || order == f64::INFINITY) {
        return Ok(());
    }
    if dims.is_none_or(|d| d.is_empty()) {
        return Err(Error::runtime(format!(
            "{op} cannot compute the {order} norm on an empty tensor because the operation does not have an identity"
        )));
    }
    match (0..x.ndim()).find(|&d| mask >> d & 1 != 0 && x.shape()[d] == 0) {
        Some(d) => Err(Error::runtime(format!(
            "{op} cannot compute the {order} norm on the dimension {d} because this dimension is empty and the operation does not have an identity"
        ))),
        None => Ok(()),
    }
}

impl Tensor {
    /// The norm `(sum |x|^order)^(1/order)` over dimensions (all where none are given), computed without overflow or underflow;
    /// order 0 counts elements that are not zero, infinite orders give the extreme magnitude. `dtype` converts first.
    ///
    /// `NotImplementedError` for integers; `RuntimeError` where `dtype` is narrower, or where there is nothing to choose from.
    pub fn vector_norm(&self, order: f64, dims: Option<&[i64]>, keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let mask = dims_mask("linalg.vector_norm", dims, self.ndim(), true)?;
        check(self, order, dims, mask, dtype)?;
        let x = self.to_dtype(dtype.unwrap_or(self.dtype()))?;
        let x = if x.dtype().is_complex() { x.abs()? } else { x };
        bind1(&VectorNorm { order, dims: mask, keepdim }, &[&x])
    }

    /// The Euclidean norm of all elements.
    pub fn norm(&self) -> Result<Tensor> {
        self.vector_norm(2.0, None, false, None)
    }

    /// The norm of the difference.
    pub fn dist(&self, other: &Tensor, order: f64) -> Result<Tensor> {
        self.sub(other)?.vector_norm(order, None, false, None)
    }
}

fn vector_norm(a: &Args) -> Result<Out> {
    let order = a.scalar(1)?.to_f64();
    Ok(a.tensor(0)?.vector_norm(order, a.opt_ints(2)?.as_deref(), a.bool(3)?, a.opt_dtype(4)?)?.into())
}

fn order(a: &Args) -> Result<f64> {
    Ok(a.opt_scalar(1)?.map_or(2.0, Scalar::to_f64))
}

pub(super) static OPS: &[Op] = &[
    function("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", |a| Ok(a.tensor(0)?.vector_norm(order(a)?, None, false, None)?.into()))
        .doc("The norm of order `p` of all elements; see `linalg.vector_norm`.")
        .places(place::METHOD | place::PRIVATE)
        .samples(&["T(2,3)", "T(2,3), 3", "T(2,3), 1"])
        .without_out(),
    function("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", |a| {
        Ok(a.tensor(0)?.vector_norm(order(a)?, Some(&a.ints(2)?), a.bool(3)?, None)?.into())
    })
    .doc("The norm of order `p` (2 unless given) over dimensions.")
    .places(place::METHOD | place::PRIVATE)
    .samples(&["T(2,3), 2, 1", "T(2,3), None, [0, 1], True"]),
    function("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", |a| {
        Ok(a.tensor(0)?.vector_norm(order(a)?, Some(&a.ints(2)?), a.bool(3)?, Some(a.dtype(4)?))?.into())
    })
    .doc("The norm of order `p` over dimensions, in `dtype`.")
    .places(place::METHOD | place::PRIVATE)
    .samples(&["T(2,3), 2, 1, False, dtype=float64"]),
    function("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", |a| {
        Ok(a.tensor(0)?.vector_norm(order(a)?, None, false, Some(a.dtype(2)?))?.into())
    })
    .doc("The norm of order `p` of all elements, in `dtype`.")
    .places(place::METHOD | place::PRIVATE)
    .samples(&["T(2,3), 2, dtype=float64"])
    .without_out(),
    function(
        "vector_norm(Tensor x, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        vector_norm,
    )
    .doc("The norm `(sum |x|^ord)^(1/ord)` over dimensions (all unless given), without overflow or underflow on the way; order 0 counts elements that are not zero, infinite orders give the extreme magnitude.")
    .places(place::LINALG)
    .samples(&["T(2,3)", "T(2,3), 3, 1, True", "T(2,3), 1, [0, 1]", "T(2,3; 0.5..2), -1", "T(2,3; 0.5..2), 0.5, 0"]),
    function(
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        vector_norm,
    )
    .doc("`linalg.vector_norm`.")
    .places(place::PRIVATE)
    .samples(&["T(2,3)", "T(2,3), 1, 0"]),
    function("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", |a| Ok(a.tensor(0)?.dist(a.tensor(1)?, a.scalar(2)?.to_f64())?.into()))
        .doc("The norm of order `p` of the difference.")
        .samples(&["T(2,3), T(2,3)", "T(2,3), T(3), 3"]),
];
