//! Quotients and remainders.

use super::{Operand, Rule, Spec, call, call_inplace, flat, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, choose, function, place, pointwise};
use flambeau_base::{DType, Error, Result};
use smallvec::smallvec;

pub(crate) static DIV: Spec = Spec::new("div", Rule::Float, |k, x| k.div(x[0], x[1])).vjp(Reads::inputs(0b11), |cx, g| {
    Ok(smallvec![
        cx.when(0, || g.div(&cx.operand(1)?))?,
        cx.when(1, || g.neg()?.mul(&div(&cx.operand(0)?, &cx.operand(1)?)?.div(&cx.operand(1)?)?))?
    ])
});

/// Floor division is constant almost everywhere.
pub(crate) static DIV_FLOOR: Spec = Spec::new("div", Rule::Common, |k, x| k.floor_div(x[0], x[1]))
    .refuses(|d| d == DType::Bool)
    .vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || zeros_like(g))?, cx.when(1, || zeros_like(g))?]));

pub(crate) static DIV_TRUNC: Spec = Spec::new("div", Rule::Common, |k, x| {
    if !k.dtype(x[0]).is_reduced_float() {
        return k.trunc_div(x[0], x[1]);
    }
    // The quotient is rounded before it is cut.
    let quotient = k.div(x[0], x[1]);
    k.trunc(quotient)
})
.refuses(|d| d == DType::Bool)
.vjp(Reads::NONE, |cx, g| Ok(smallvec![cx.when(0, || zeros_like(g))?, cx.when(1, || zeros_like(g))?]));

static FLOOR_DIVIDE: Spec = Spec::new("floor_divide", Rule::Common, |k, x| k.floor_div(x[0], x[1])).refuses(|d| d == DType::Bool);

static REMAINDER: Spec =
    Spec::new("remainder", Rule::Common, |k, x| k.rem(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::inputs(0b11), |cx, g| {
        let second = || g.neg()?.mul(&call(&DIV_FLOOR, &[(&cx.operand(0)?).into(), (&cx.operand(1)?).into()])?);
        Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, second)?])
    });

static FMOD: Spec =
    Spec::new("fmod", Rule::Common, |k, x| k.fmod(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::inputs(0b11), |cx, g| {
        let second = || g.neg()?.mul(&call(&DIV_TRUNC, &[(&cx.operand(0)?).into(), (&cx.operand(1)?).into()])?);
        Ok(smallvec![cx.when(0, || Ok(g.clone()))?, cx.when(1, second)?])
    });

static RECIPROCAL: Spec = Spec::new("reciprocal", Rule::Float, |k, x| k.reciprocal(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(cx.output().and_then(|y| g.neg()?.mul(&y.mul(&y)?))));

fn zeros_like(g: &Tensor) -> Result<Tensor> {
    Ok(flat(g)?.remove(0).unwrap_or_else(|| g.clone()))
}

fn div<'a>(a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
    call(&DIV, &[a.into(), b.into()])
}

fn rounded(a: &crate::ops::Args) -> Result<(&'static Spec, smallvec::SmallVec<[Operand<'_>; 3]>)> {
    let spec = match a.opt_str(2)?.as_deref() {
        None => &DIV,
        Some("floor") => &DIV_FLOOR,
        Some("trunc") => &DIV_TRUNC,
        Some(other) => {
            return Err(Error::runtime(format!("div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'")));
        }
    };
    Ok((spec, smallvec![a.operand(0)?, a.operand(1)?]))
}

pub(super) static OPS: &[Op] = &[
    choose("div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor", rounded)
        .numbers(0xff)
        .doc("`self / other`, element by element; integers give floats. With `rounding_mode='floor'` or `'trunc'` the quotient is rounded and integers stay integers.")
        .samples(&["T(2,3), T(2,3; 0.5..2)", "T(2,3), T(3; 0.5..2), rounding_mode='floor'", "T(2,3), 2"]),
    choose("divide(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor", rounded).numbers(0xff)
        .doc("Alias of `div`.").samples(&["T(2,3), T(3; 0.5..2)"]),
    pointwise("true_divide(Tensor self, Tensor other) -> Tensor", &DIV).numbers(0xff)
        .doc("`div` without rounding.").samples(&["T(2,3), T(3; 0.5..2)"]),
    pointwise("floor_divide(Tensor self, Tensor other) -> Tensor", &FLOOR_DIVIDE)
        .numbers(0xff)
        .doc("Quotient rounded towards minus infinity, element by element.")
        .samples(&["T(2,3), T(2,3; 0.5..2)", "T(2,3), 2"])
        .reference(|x| (x[0] / x[1]).floor()),
    pointwise("remainder(Tensor self, Tensor other) -> Tensor", &REMAINDER)
        .doc("Remainder of the division, with the sign of `other` (as Python's `%`).")
        .samples(&["T(2,3), T(2,3; 0.5..2)", "T(2,3), 2"])
        .reference(|x| x[0] - x[1] * (x[0] / x[1]).floor()),
    pointwise("fmod(Tensor self, Tensor other) -> Tensor", &FMOD)
        .numbers(0b10)
        .doc("Remainder of the division, with the sign of `self` (as C's `fmod`).")
        .samples(&["T(2,3), T(2,3; 0.5..2)", "T(2,3), 2"])
        .reference(|x| x[0] % x[1]),
    function("__rdiv__(Tensor self, Tensor other) -> Tensor", |a| Ok(a.tensor(0)?.reciprocal()?.mul(a.operand(1)?)?.into()))
        .doc("`other / self`, as the product of `other` and the reciprocal.")
        .places(place::METHOD)
        .samples(&["T(2,3; 0.5..2), T(2,3)"])
        .without_out(),
    pointwise("reciprocal(Tensor self) -> Tensor", &RECIPROCAL).doc("`1 / self`, element by element.").samples(&["T(2,3)"]).domain(0.5, 2.0).reference(|x| 1.0 / x[0]),
];

impl Tensor {
    /// Quotient, element by element, with broadcasting; integers give floats.
    pub fn div<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&DIV, &[self.into(), other.into()])
    }

    /// Divides in place.
    pub fn div_<'a>(&self, other: impl Into<Operand<'a>>) -> Result<&Tensor> {
        call_inplace(&DIV, &[self.into(), other.into()])?;
        Ok(self)
    }

    /// Quotient rounded towards minus infinity.
    pub fn floor_divide<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&FLOOR_DIVIDE, &[self.into(), other.into()])
    }

    /// Remainder with the sign of the divisor.
    pub fn remainder<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&REMAINDER, &[self.into(), other.into()])
    }

    /// `1 / self`, element by element.
    pub fn reciprocal(&self) -> Result<Tensor> {
        call(&RECIPROCAL, &[self.into()])
    }
}
