//! Powers and roots.

use super::{Arg, Operand, Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, choose, pointwise};
use flambeau_base::{Complex64, DType, Error, Result, Scalar};
use smallvec::{SmallVec, smallvec};

static POW: Spec =
    Spec::new("pow", Rule::Common, |k, x| k.pow(x[0], x[1])).refuses(|d| d == DType::Bool).vjp(Reads::both(0b11, 1), |cx, g| {
        Ok(smallvec![
            cx.when(0, || base_gradient(g, &cx.tensor(0)?, &cx.operand(1)?))?,
            cx.when(1, || exponent_gradient(g, &cx.operand(0)?, &cx.output()?))?
        ])
    });

/// The square is exact in every dtype and needs no logarithm.
static POW_2: Spec =
    Spec::new("pow", Rule::Common, |k, x| k.mul(x[0], x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.mul(2.0)?)));

/// `e * x^(e - 1) * g`; 0 where the exponent is 0, whatever the base.
fn base_gradient(g: &Tensor, x: &Tensor, e: &Arg) -> Result<Tensor> {
    match e {
        Arg::Scalar(Scalar::Complex(z)) => g.mul(&x.pow(Scalar::Complex(*z - 1.0))?.mul(Scalar::Complex(*z))?),
        Arg::Scalar(s) if s.is(0.0) => Tensor::zeros(g.shape(), g.dtype(), g.device()),
        Arg::Scalar(s) => g.mul(&x.pow(s.to_f64() - 1.0)?.mul(s.to_f64())?),
        Arg::Tensor(e) => {
            let slope = g.mul(&e.mul(&x.pow(&e.sub(1.0)?)?)?)?;
            slope.masked_fill(&e.eq(0.0)?.expand_as(&slope)?, 0.0)
        }
    }
}

/// `x^e * log(x) * g`; 0 where the base is 0 and the exponent is not negative.
fn exponent_gradient(g: &Tensor, x: &Arg, y: &Tensor) -> Result<Tensor> {
    match x {
        Arg::Scalar(s) if s.to_complex() != Complex64::ZERO && y.dtype().is_complex() => {
            g.mul(&y.mul(Scalar::Complex(s.to_complex().ln()))?)
        }
        Arg::Scalar(s) if s.is(0.0) => {
            let zero = Tensor::zeros(g.shape(), g.dtype(), g.device())?;
            Tensor::where_(&y.isinf()?, &y.neg()?.mul(g)?, &zero)
        }
        Arg::Scalar(s) => g.mul(&y.mul(s.to_f64().ln())?),
        Arg::Tensor(x) => {
            let slope = g.mul(&y.mul(&x.log()?)?)?;
            let still = x.eq(0.0)?.expand_as(&slope)?.logical_and(&y.isfinite()?)?;
            slope.masked_fill(&still, 0.0)
        }
    }
}

pub(crate) static SQRT: Spec =
    Spec::new("sqrt", Rule::Float, |k, x| k.sqrt(x[0])).vjp(Reads::OUTPUT, |cx, g| one(g.div(&cx.output()?.mul(2.0)?)));

pub(crate) static RSQRT: Spec = Spec::new("rsqrt", Rule::Float, |k, x| k.rsqrt(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(cx.output().and_then(|y| g.mul(&y.mul(&y)?.mul(&y)?)?.mul(-0.5))));

/// `base` to the power of each element.
pub(crate) fn power_of(base: f64, exponents: &Tensor) -> Result<Tensor> {
    call(&POW, &[base.into(), exponents.into()])
}

fn exponent(a: &Args) -> Result<(&'static Spec, SmallVec<[Operand<'_>; 3]>)> {
    let (x, e) = (a.operand(0)?, a.operand(1)?);
    if let Operand::Scalar(s) = e {
        let integral = matches!(x, Operand::Tensor(t) if t.dtype().is_integral());
        if integral && s.is_integral() && s.to_i64() < 0 {
            return Err(Error::runtime("pow: Integers to negative integer powers are not allowed."));
        }
        if s == Scalar::Float(2.0) && !integral || s == Scalar::Int(2) && !matches!(x, Operand::Tensor(t) if t.dtype() == DType::Bool) {
            return Ok((&POW_2, smallvec![x]));
        }
    }
    Ok((&POW, smallvec![x, e]))
}

pub(super) static OPS: &[Op] = &[
    choose("pow(Tensor self, Tensor exponent) -> Tensor", exponent)
        .doc("`self` to the power of `exponent`, element by element. Integers to negative powers are refused.")
        .samples(&["T(2,3; 0.5..2), T(2,3)", "T(2,3; 0.5..2), T(3)", "T(2,3; 0.5..2), 3", "T(2,3), 2", "2.5, T(2,3)"])
        .reference(|x| x[0].powf(x[1])),
    pointwise("sqrt(Tensor self) -> Tensor", &SQRT)
        .doc("Square root, element by element; NaN below zero.")
        .samples(&["T(2,3)"])
        .domain(0.25, 4.0)
        .reference(|x| x[0].sqrt()),
    pointwise("rsqrt(Tensor self) -> Tensor", &RSQRT)
        .doc("`1 / sqrt(self)`, element by element.")
        .samples(&["T(2,3)"])
        .domain(0.25, 4.0)
        .reference(|x| 1.0 / x[0].sqrt()),
];

impl Tensor {
    /// Power, element by element.
    pub fn pow<'a>(&self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        match exponent.into() {
            Operand::Scalar(s) if s.to_f64() == 2.0 && !s.dtype().is_complex() && self.dtype().is_float() => call(&POW_2, &[self.into()]),
            e => call(&POW, &[self.into(), e]),
        }
    }

    /// Square root, element by element.
    pub fn sqrt(&self) -> Result<Tensor> {
        call(&SQRT, &[self.into()])
    }

    /// `1 / sqrt(self)`, element by element.
    pub fn rsqrt(&self) -> Result<Tensor> {
        call(&RSQRT, &[self.into()])
    }
}
