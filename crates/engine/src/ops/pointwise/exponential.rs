//! Exponentials, logarithms and the error function.

use super::{Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, place, pointwise};
use flambeau_base::Result;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

pub(crate) static EXP: Spec = Spec::new("exp", Rule::Float, |k, x| k.exp(x[0])).vjp(Reads::OUTPUT, |cx, g| one(g.mul(&cx.output()?)));
static EXP2: Spec = Spec::new("exp2", Rule::Float, |k, x| k.exp2(x[0])).vjp(Reads::OUTPUT, |cx, g| one(g.mul(&cx.output()?.mul(LN_2)?)));
pub(super) static LOG: Spec = Spec::new("log", Rule::Float, |k, x| k.log(x[0])).vjp(Reads::INPUT, |cx, g| one(g.div(&cx.operand(0)?)));
static LOG2: Spec = Spec::new("log2", Rule::Float, |k, x| k.log2(x[0])).vjp(Reads::INPUT, |cx, g| one(g.div(&cx.tensor(0)?.mul(LN_2)?)));
static LOG10: Spec =
    Spec::new("log10", Rule::Float, |k, x| k.log10(x[0])).vjp(Reads::INPUT, |cx, g| one(g.div(&cx.tensor(0)?.mul(LN_10)?)));
pub(super) static LOG1P: Spec =
    Spec::new("log1p", Rule::Float, |k, x| k.log1p(x[0])).vjp(Reads::INPUT, |cx, g| one(g.div(&cx.tensor(0)?.add(1.0)?)));

static ERF: Spec = Spec::new("erf", Rule::Float, |k, x| k.erf(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&bell(&cx.tensor(0)?)?)));
static ERFC: Spec =
    Spec::new("erfc", Rule::Float, |k, x| k.erfc(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&bell(&cx.tensor(0)?)?)?.neg()));
static ERFINV: Spec = Spec::new("erfinv", Rule::Float, |k, x| k.erfinv(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(cx.output().and_then(|y| g.mul(&y.mul(&y)?.exp()?.mul(1.0 / FRAC_2_SQRT_PI)?))));

/// `2 / sqrt(pi) * exp(-x^2)`.
fn bell(x: &Tensor) -> Result<Tensor> {
    x.mul(x)?.neg()?.exp()?.mul(FRAC_2_SQRT_PI)
}

const SPECIAL: u8 = place::TORCH | place::METHOD | place::SPECIAL;

pub(super) static OPS: &[Op] = &[
    pointwise("exp(Tensor self) -> Tensor", &EXP)
        .doc("e to the power of `self`, element by element.")
        .samples(&["T(2,3)"])
        .reference(|x| x[0].exp()),
    pointwise("exp2(Tensor self) -> Tensor", &EXP2)
        .doc("2 to the power of `self`, element by element.")
        .places(SPECIAL)
        .samples(&["T(2,3)"])
        .reference(|x| x[0].exp2()),
    pointwise("log(Tensor self) -> Tensor", &LOG)
        .doc("Natural logarithm, element by element.")
        .samples(&["T(2,3)"])
        .domain(0.25, 4.0)
        .reference(|x| x[0].ln()),
    pointwise("log2(Tensor self) -> Tensor", &LOG2)
        .doc("Base-2 logarithm, element by element.")
        .samples(&["T(2,3)"])
        .domain(0.25, 4.0)
        .reference(|x| x[0].log2()),
    pointwise("log10(Tensor self) -> Tensor", &LOG10)
        .doc("Base-10 logarithm, element by element.")
        .samples(&["T(2,3)"])
        .domain(0.25, 4.0)
        .reference(|x| x[0].log10()),
    pointwise("log1p(Tensor self) -> Tensor", &LOG1P)
        .doc("`log(1 + self)`, accurate for small values.")
        .places(SPECIAL)
        .samples(&["T(2,3)"])
        .domain(-0.5, 2.0)
        .reference(|x| x[0].ln_1p()),
    pointwise("erf(Tensor self) -> Tensor", &ERF).doc("Error function, element by element.").places(SPECIAL).samples(&["T(2,3)"]),
    pointwise("erfc(Tensor self) -> Tensor", &ERFC).doc("`1 - erf(self)`, accurate for large values.").places(SPECIAL).samples(&["T(2,3)"]),
    pointwise("erfinv(Tensor self) -> Tensor", &ERFINV)
        .doc("Inverse error function for values in (-1, 1); ±inf at ±1, NaN outside.")
        .places(SPECIAL)
        .samples(&["T(2,3)"])
        .domain(-0.9, 0.9),
];

impl Tensor {
    /// e to the power of each element.
    pub fn exp(&self) -> Result<Tensor> {
        call(&EXP, &[self.into()])
    }

    /// Natural logarithm, element by element.
    pub fn log(&self) -> Result<Tensor> {
        call(&LOG, &[self.into()])
    }

    /// `log(1 + x)`, element by element.
    pub fn log1p(&self) -> Result<Tensor> {
        call(&LOG1P, &[self.into()])
    }

    /// 2 to the power of each element.
    pub fn exp2(&self) -> Result<Tensor> {
        call(&EXP2, &[self.into()])
    }

    /// Complementary error function, element by element.
    pub fn erfc(&self) -> Result<Tensor> {
        call(&ERFC, &[self.into()])
    }

    /// Error function, element by element.
    pub fn erf(&self) -> Result<Tensor> {
        call(&ERF, &[self.into()])
    }
}
