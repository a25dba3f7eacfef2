//! The gamma function's logarithm and its derivatives, zeta functions, incomplete gamma functions.

use super::{Operand, Rule, Spec, call, one, scalar_of};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, choose, function, place, pointwise};
use flambeau_base::{DType, Error, Result};
use flambeau_ir::Special;
use smallvec::{SmallVec, smallvec};
use std::f64::consts::PI;

static LGAMMA: Spec = Spec::new("lgamma", Rule::Float, |k, x| k.special(Special::Lgamma, x))
    .refuses(DType::is_complex)
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&call(&DIGAMMA, &[(&cx.tensor(0)?).into()])?)));

static DIGAMMA: Spec = Spec::new("digamma", Rule::Float, |k, x| k.special(Special::Digamma, x))
    .refuses(DType::is_complex)
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&polygamma(&cx.tensor(0)?, 1.0)?)));

/// The order is a parameter.
static POLYGAMMA: Spec = Spec::new("polygamma", Rule::Float, |k, x| k.special(Special::Polygamma, x))
    .params(1)
    .refuses(DType::is_complex)
    .vjp(Reads::INPUT, |cx, g| {
        let n = scalar_of(&cx.operand(1)?).to_f64();
        Ok(smallvec![Some(g.mul(&polygamma(&cx.tensor(0)?, n + 1.0)?)?), None])
    });

fn polygamma(x: &Tensor, n: f64) -> Result<Tensor> {
    call(&POLYGAMMA, &[x.into(), n.into()])
}

static ZETA: Spec = Spec::new("special_zeta", Rule::Float, |k, x| k.special(Special::Zeta, x)).refuses(DType::is_complex).vjp(
    Reads::inputs(0b11),
    |cx, g| {
        let second = || {
            let (s, q) = (cx.operand(0)?, cx.operand(1)?);
            let next = match &s {
                super::Arg::Tensor(t) => call(&ZETA, &[(&t.add(1.0)?).into(), (&q).into()])?,
                super::Arg::Scalar(v) => call(&ZETA, &[(v.to_f64() + 1.0).into(), (&q).into()])?,
            };
            g.mul(&s)?.mul(&next)?.neg()
        };
        Ok(smallvec![cx.when(0, || Err(no_derivative("special_zeta", "self")))?, cx.when(1, second)?])
    },
);

fn no_derivative(op: &str, argument: &str) -> Error {
    Error::not_implemented(format!("the derivative for '{argument}' of {op} is not implemented"))
}

/// The density of the gamma distribution of shape `a`: the derivative of the lower incomplete function.
fn density(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    x.log()?.mul(&a.sub(1.0)?)?.sub(x)?.sub(&call(&LGAMMA, &[a.into()])?)?.exp()
}

static IGAMMA: Spec =
    Spec::new("igamma", Rule::Common, |k, x| k.special(Special::Igamma, x)).refuses(|d| !d.is_float()).vjp(Reads::inputs(0b11), |cx, g| {
        let second = || g.mul(&density(&cx.tensor(0)?, &cx.tensor(1)?)?);
        Ok(smallvec![cx.when(0, || Err(no_derivative("igamma", "self")))?, cx.when(1, second)?])
    });

static IGAMMAC: Spec = Spec::new("igammac", Rule::Common, |k, x| k.special(Special::Igammac, x)).refuses(|d| !d.is_float()).vjp(
    Reads::inputs(0b11),
    |cx, g| {
        let second = || g.mul(&density(&cx.tensor(0)?, &cx.tensor(1)?)?)?.neg();
        Ok(smallvec![cx.when(0, || Err(no_derivative("igammac", "self")))?, cx.when(1, second)?])
    },
);

/// The polygamma function of an order, where the order is argument `n` and the tensor argument `x`.
fn of_order(a: &Args, n: usize, x: usize) -> Result<(&'static Spec, SmallVec<[Operand<'_>; 3]>)> {
    let n = a.int(n)?;
    if n < 0 {
        return Err(Error::runtime(format!("polygamma: polygamma(n, x) does not support negative n, got {n}")));
    }
    Ok((&POLYGAMMA, smallvec![a.operand(x)?, (n as f64).into()]))
}

/// The logarithm of the multivariate gamma function: a sum of `p` of the univariate one.
fn mvlgamma(a: &Args) -> Result<Out> {
    let (x, p) = (a.tensor(0)?, a.int(1)?);
    if p < 1 {
        return Err(Error::runtime(format!("{}: p has to be greater than or equal to 1, got {p}", a.name)));
    }
    let x = if x.dtype().is_integral() { x.to_dtype(flambeau_base::default_dtype())? } else { x.clone() };
    let steps = Tensor::arange(0, p, 1, Some(x.dtype()), x.device())?.mul(-0.5)?;
    let terms = call(&LGAMMA, &[(&x.unsqueeze(-1)?.add(&steps)?).into()])?;
    let sum = terms.sum_dims(Some(&[-1]), false, None)?;
    Ok(sum.add((p * (p - 1)) as f64 / 4.0 * PI.ln())?.into())
}

const SPECIAL: u8 = place::TORCH | place::METHOD | place::SPECIAL;

pub(super) static OPS: &[Op] = &[
    pointwise("lgamma(Tensor self) -> Tensor", &LGAMMA)
        .doc("Logarithm of the magnitude of the gamma function.")
        .samples(&["T(2,3; 0.25..9)"]),
    pointwise("gammaln(Tensor self) -> Tensor", &LGAMMA)
        .doc("Alias of `lgamma`.")
        .places(place::SPECIAL)
        .samples(&["T(2,3; 0.25..9)"])
        .without_inplace(),
    pointwise("digamma(Tensor self) -> Tensor", &DIGAMMA)
        .doc("Derivative of `lgamma`; NaN at negative integers, infinite at 0.")
        .places(SPECIAL)
        .samples(&["T(2,3; 0.25..4)"]),
    pointwise("psi(Tensor self) -> Tensor", &DIGAMMA)
        .doc("Alias of `digamma`.")
        .places(place::SPECIAL)
        .samples(&["T(2,3; 0.25..4)"])
        .without_inplace(),
    choose("polygamma(int n, Tensor self) -> Tensor", |a| of_order(a, 0, 1))
        .doc("Derivative of order `n` of `digamma`.")
        .places(place::TORCH | place::SPECIAL)
        .samples(&["1, T(2,3; 0.5..4)", "2, T(2,3; 0.5..4)"])
        .without_inplace(),
    choose("polygamma(Tensor self, int n) -> Tensor", |a| of_order(a, 1, 0))
        .doc("Derivative of order `n` of `digamma`.")
        .places(place::METHOD)
        .samples(&["T(2,3; 0.5..4), 1"]),
    function("mvlgamma(Tensor self, int p) -> Tensor", mvlgamma)
        .doc("Logarithm of the multivariate gamma function of dimension `p`; defined above `(p - 1) / 2`.")
        .samples(&["T(2,3; 2..4), 3"])
        .with_inplace(),
    function("multigammaln(Tensor self, int p) -> Tensor", mvlgamma)
        .doc("Alias of `mvlgamma`.")
        .places(place::SPECIAL)
        .samples(&["T(2,3; 2..4), 3"]),
    pointwise("zeta(Tensor self, Tensor other) -> Tensor", &ZETA)
        .doc("Hurwitz's zeta function: the sum of `(other + k)**-self` over k = 0, 1, ...")
        .places(place::SPECIAL)
        .samples(&["3.0, T(2,3; 0.5..4)"])
        .without_inplace(),
    pointwise("igamma(Tensor self, Tensor other) -> Tensor", &IGAMMA)
        .numbers(0)
        .doc("Regularised lower incomplete gamma function of shape `self`.")
        .samples(&["I(2,3; 1..4), T(3; 0.5..4)"]),
    pointwise("gammainc(Tensor self, Tensor other) -> Tensor", &IGAMMA)
        .numbers(0)
        .doc("Alias of `igamma`.")
        .places(place::SPECIAL)
        .samples(&["I(2,3; 1..4), T(3; 0.5..4)"])
        .without_inplace(),
    pointwise("igammac(Tensor self, Tensor other) -> Tensor", &IGAMMAC)
        .numbers(0)
        .doc("Regularised upper incomplete gamma function of shape `self`.")
        .samples(&["I(2,3; 1..4), T(3; 0.5..4)"]),
    pointwise("gammaincc(Tensor self, Tensor other) -> Tensor", &IGAMMAC)
        .numbers(0)
        .doc("Alias of `igammac`.")
        .places(place::SPECIAL)
        .samples(&["I(2,3; 1..4), T(3; 0.5..4)"])
        .without_inplace(),
];
