//! Trigonometric and hyperbolic functions.

use super::{Operand, Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, pointwise};
use flambeau_base::Result;
use smallvec::smallvec;

static SIN: Spec = Spec::new("sin", Rule::Float, |k, x| k.sin(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.cos()?)));
static COS: Spec = Spec::new("cos", Rule::Float, |k, x| k.cos(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.sin()?)?.neg()));
static TAN: Spec = Spec::new("tan", Rule::Float, |k, x| k.tan(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(cx.output().and_then(|y| g.mul(&y.mul(&y)?.add(1.0)?))));
static ASIN: Spec =
    Spec::new("asin", Rule::Float, |k, x| k.asin(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&one_minus_square(&cx.tensor(0)?)?.rsqrt()?)));
static ACOS: Spec = Spec::new("acos", Rule::Float, |k, x| k.acos(x[0]))
    .vjp(Reads::INPUT, |cx, g| one(g.mul(&one_minus_square(&cx.tensor(0)?)?.rsqrt()?)?.neg()));
static ATAN: Spec = Spec::new("atan", Rule::Float, |k, x| k.atan(x[0]))
    .vjp(Reads::INPUT, |cx, g| one(cx.tensor(0).and_then(|x| g.div(&x.mul(&x)?.add(1.0)?))));
static SINH: Spec =
    Spec::new("sinh", Rule::Float, |k, x| k.sinh(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&call(&COSH, &[(&cx.tensor(0)?).into()])?)));
static COSH: Spec =
    Spec::new("cosh", Rule::Float, |k, x| k.cosh(x[0])).vjp(Reads::INPUT, |cx, g| one(g.mul(&call(&SINH, &[(&cx.tensor(0)?).into()])?)));
static ASINH: Spec = Spec::new("asinh", Rule::Float, |k, x| k.asinh(x[0]))
    .vjp(Reads::INPUT, |cx, g| one(cx.tensor(0).and_then(|x| g.mul(&x.mul(&x)?.add(1.0)?.rsqrt()?))));
static ACOSH: Spec = Spec::new("acosh", Rule::Float, |k, x| k.acosh(x[0]))
    .vjp(Reads::INPUT, |cx, g| one(cx.tensor(0).and_then(|x| g.mul(&x.mul(&x)?.sub(1.0)?.rsqrt()?))));
static ATANH: Spec =
    Spec::new("atanh", Rule::Float, |k, x| k.atanh(x[0])).vjp(Reads::INPUT, |cx, g| one(g.div(&one_minus_square(&cx.tensor(0)?)?)));

pub(crate) static TANH: Spec = Spec::new("tanh", Rule::Float, |k, x| k.tanh(x[0]))
    .vjp(Reads::OUTPUT, |cx, g| one(call(&TANH_BACKWARD, &[g.into(), (&cx.output()?).into()])));

/// `g * (1 - y^2)`, rounded once.
static TANH_BACKWARD: Spec = Spec::new("tanh_backward", Rule::Common, |k, x| {
    let (g, y) = (k.widen(x[0]), k.widen(x[1]));
    let (square, one) = (k.mul(y, y), k.like(y, 1.0));
    let slope = k.sub(one, square);
    k.mul(g, slope)
})
.vjp(Reads::inputs(0b11), |cx, gg| {
    let second = || gg.mul(&cx.operand(0)?)?.mul(&cx.operand(1)?)?.mul(-2.0);
    Ok(smallvec![cx.when(0, || call(&TANH_BACKWARD, &[gg.into(), (&cx.operand(1)?).into()]))?, cx.when(1, second)?])
});

static ATAN2: Spec = Spec::new("atan2", Rule::Float, |k, x| k.atan2(x[0], x[1])).vjp(Reads::inputs(0b11), |cx, g| {
    let (y, x) = (cx.tensor(0)?, cx.tensor(1)?);
    let scaled = g.div(&y.mul(&y)?.add(&x.mul(&x)?)?)?;
    Ok(smallvec![cx.when(0, || scaled.mul(&x))?, cx.when(1, || scaled.mul(&y)?.neg())?])
});

fn one_minus_square(x: &Tensor) -> Result<Tensor> {
    x.mul(x)?.neg()?.add(1.0)
}

pub(super) static OPS: &[Op] = &[
    pointwise("sin(Tensor self) -> Tensor", &SIN).doc("Sine of angles in radians.").samples(&["T(2,3)"]).reference(|x| x[0].sin()),
    pointwise("cos(Tensor self) -> Tensor", &COS).doc("Cosine of angles in radians.").samples(&["T(2,3)"]).reference(|x| x[0].cos()),
    pointwise("tan(Tensor self) -> Tensor", &TAN)
        .doc("Tangent of angles in radians.")
        .samples(&["T(2,3)"])
        .domain(-1.0, 1.0)
        .reference(|x| x[0].tan()),
    pointwise("asin(Tensor self) -> Tensor", &ASIN)
        .doc("Inverse sine, in radians.")
        .samples(&["T(2,3)"])
        .domain(-0.9, 0.9)
        .reference(|x| x[0].asin()),
    pointwise("acos(Tensor self) -> Tensor", &ACOS)
        .doc("Inverse cosine, in radians.")
        .samples(&["T(2,3)"])
        .domain(-0.9, 0.9)
        .reference(|x| x[0].acos()),
    pointwise("atan(Tensor self) -> Tensor", &ATAN).doc("Inverse tangent, in radians.").samples(&["T(2,3)"]).reference(|x| x[0].atan()),
    pointwise("sinh(Tensor self) -> Tensor", &SINH).doc("Hyperbolic sine.").samples(&["T(2,3)"]).reference(|x| x[0].sinh()),
    pointwise("cosh(Tensor self) -> Tensor", &COSH).doc("Hyperbolic cosine.").samples(&["T(2,3)"]).reference(|x| x[0].cosh()),
    pointwise("asinh(Tensor self) -> Tensor", &ASINH).doc("Inverse hyperbolic sine.").samples(&["T(2,3)"]).reference(|x| x[0].asinh()),
    pointwise("acosh(Tensor self) -> Tensor", &ACOSH)
        .doc("Inverse hyperbolic cosine.")
        .samples(&["T(2,3)"])
        .domain(1.25, 3.0)
        .reference(|x| x[0].acosh()),
    pointwise("atanh(Tensor self) -> Tensor", &ATANH)
        .doc("Inverse hyperbolic tangent.")
        .samples(&["T(2,3)"])
        .domain(-0.9, 0.9)
        .reference(|x| x[0].atanh()),
    pointwise("tanh(Tensor self) -> Tensor", &TANH).doc("Hyperbolic tangent.").samples(&["T(2,3)"]).reference(|x| x[0].tanh()),
    pointwise("atan2(Tensor self, Tensor other) -> Tensor", &ATAN2)
        .numbers(0)
        .doc("Angle of the point (`other`, `self`), in radians.")
        .samples(&["T(2,3; 0.5..2), T(2,3; 0.5..2)"])
        .reference(|x| x[0].atan2(x[1])),
    pointwise("arccos(Tensor self) -> Tensor", &ACOS).doc("Alias of `acos`.").samples(&["T(2,3)"]).domain(-0.9, 0.9),
    pointwise("arcsin(Tensor self) -> Tensor", &ASIN).doc("Alias of `asin`.").samples(&["T(2,3)"]).domain(-0.9, 0.9),
    pointwise("arctan(Tensor self) -> Tensor", &ATAN).doc("Alias of `atan`.").samples(&["T(2,3)"]),
    pointwise("arccosh(Tensor self) -> Tensor", &ACOSH).doc("Alias of `acosh`.").samples(&["T(2,3)"]).domain(1.25, 3.0),
    pointwise("arcsinh(Tensor self) -> Tensor", &ASINH).doc("Alias of `asinh`.").samples(&["T(2,3)"]),
    pointwise("arctanh(Tensor self) -> Tensor", &ATANH).doc("Alias of `atanh`.").samples(&["T(2,3)"]).domain(-0.9, 0.9),
    pointwise("arctan2(Tensor self, Tensor other) -> Tensor", &ATAN2)
        .numbers(0)
        .doc("Alias of `atan2`.")
        .samples(&["T(2,3; 0.5..2), T(2,3; 0.5..2)"]),
];

impl Tensor {
    /// Sine of angles in radians.
    pub fn sin(&self) -> Result<Tensor> {
        call(&SIN, &[self.into()])
    }

    /// Cosine of angles in radians.
    pub fn cos(&self) -> Result<Tensor> {
        call(&COS, &[self.into()])
    }

    /// Hyperbolic tangent.
    pub fn tanh(&self) -> Result<Tensor> {
        call(&TANH, &[self.into()])
    }

    /// Angle of the point (`other`, `self`), in radians.
    pub fn atan2<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&ATAN2, &[self.into(), other.into()])
    }
}
