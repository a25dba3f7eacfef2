//! Numbers and how they are made up: signs, neighbours, divisors, exponents, degrees.

use super::{Operand, Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, function, pointwise};
use flambeau_base::{DType, Error, Result};
use flambeau_ir::Special;
use smallvec::smallvec;

static DEG2RAD: Spec = Spec::new("deg2rad", Rule::Float, |k, x| {
    let a = k.widen(x[0]);
    let factor = k.like(a, std::f64::consts::PI / 180.0);
    k.mul(a, factor)
})
.refuses(DType::is_complex)
.vjp(Reads::NONE, |_, g| one(g.mul(std::f64::consts::PI / 180.0)));

static RAD2DEG: Spec = Spec::new("rad2deg", Rule::Float, |k, x| {
    let a = k.widen(x[0]);
    let factor = k.like(a, 180.0 / std::f64::consts::PI);
    k.mul(a, factor)
})
.refuses(DType::is_complex)
.vjp(Reads::NONE, |_, g| one(g.mul(180.0 / std::f64::consts::PI)));

static COPYSIGN: Spec = Spec::new("copysign", Rule::Float, |k, x| k.copysign(x[0], x[1])).vjp(Reads::both(0b1, 1), |cx, g| {
    let first = || {
        let (x, y) = (cx.tensor(0)?, cx.output()?);
        // The sign that it was given times the one it had; 0 at 0.
        g.mul(&y.sign()?.mul(&x.sign()?)?)
    };
    Ok(smallvec![cx.when(0, first)?, cx.when(1, || g.mul(0.0))?])
});

static HYPOT: Spec = Spec::new("hypot", Rule::Common, |k, x| k.hypot(x[0], x[1])).vjp(Reads::both(0b11, 1), |cx, g| {
    let y = cx.output()?;
    Ok(smallvec![cx.when(0, || g.mul(&cx.tensor(0)?.div(&y)?))?, cx.when(1, || g.mul(&cx.tensor(1)?.div(&y)?))?])
});

static NEXTAFTER: Spec = Spec::new("nextafter", Rule::Common, |k, x| {
    let f = match k.dtype(x[0]) {
        DType::BF16 => Special::NextafterBrain,
        DType::F16 => Special::NextafterHalf,
        _ => Special::Nextafter,
    };
    k.special(f, x)
})
.refuses(DType::is_integral)
.vjp(Reads::inputs(0b11), |cx, g| {
    let first = || g.masked_fill(&cx.tensor(0)?.eq(&cx.operand(1)?)?, 0);
    Ok(smallvec![cx.when(0, first)?, cx.when(1, || Tensor::zeros(g.shape(), g.dtype(), g.device()))?])
});

static GCD: Spec = Spec::new("gcd", Rule::Integral, |k, x| k.gcd(x[0], x[1])).refuses(|d| d == DType::Bool);
static LCM: Spec = Spec::new("lcm", Rule::Integral, |k, x| k.lcm(x[0], x[1])).refuses(|d| d == DType::Bool);

static MANTISSA: Spec = Spec::new("frexp", Rule::Common, |k, x| k.special(Special::Mantissa, x))
    .refuses(DType::is_integral)
    .vjp(Reads::INPUT, |cx, g| one(g.div(&call(&EXPONENT, &[(&cx.tensor(0)?).into()])?.exp2()?)));
static EXPONENT: Spec = Spec::new("frexp", Rule::Common, |k, x| k.special(Special::Exponent, x)).refuses(DType::is_integral);

fn frexp(a: &Args) -> Result<Out> {
    let x = a.tensor(0)?;
    let mantissa = call(&MANTISSA, &[x.into()])?;
    // A float16 holds its exponents, a bfloat16 as well.
    let exponent = call(&EXPONENT, &[(&x.alias()).into()])?.to_dtype(DType::I32)?;
    Ok(Out::Tuple(smallvec![mantissa, exponent]))
}

/// A float times a power of 2 with a whole exponent, exact where the result can be.
static LDEXP: Spec = Spec::new("ldexp", Rule::First, |k, x| k.special(Special::Ldexp, x))
    .vjp(Reads::inputs(0b10), |cx, g| Ok(smallvec![cx.when(0, || call(&LDEXP, &[g.into(), (&cx.tensor(1)?).into()]))?, None]));

fn ldexp(a: &Args) -> Result<Out> {
    if let (Operand::Tensor(x), Operand::Tensor(e)) = (a.operand(0)?, a.operand(1)?)
        && e.dtype().is_integral()
        && !x.dtype().is_complex()
    {
        let x = if x.dtype().is_integral() { x.to_dtype(flambeau_base::default_dtype())? } else { x.clone() };
        return Ok(call(&LDEXP, &[(&x).into(), e.into()])?.into());
    }
    let power = match a.operand(1)? {
        Operand::Tensor(t) => super::power_of(2.0, t)?,
        Operand::Scalar(s) => Tensor::number(flambeau_base::Scalar::Float(2f64.powf(s.to_f64())))?,
    };
    Ok(a.tensor(0)?.mul(&power)?.into())
}

/// In double precision, complex where one of the operands is.
fn float_power(a: &Args) -> Result<Out> {
    let (x, e) = (a.operand(0)?, a.operand(1)?);
    let is_complex = |o: &Operand| match o {
        Operand::Tensor(t) => t.dtype().is_complex(),
        Operand::Scalar(s) => s.dtype().is_complex(),
    };
    let dtype = if is_complex(&x) || is_complex(&e) { DType::C128 } else { DType::F64 };
    let wide = |o: Operand| match o {
        Operand::Tensor(t) => t.to_dtype(dtype),
        Operand::Scalar(s) => Tensor::full(&[], s, dtype, flambeau_base::Device::CPU),
    };
    match (x, e) {
        (Operand::Tensor(x), Operand::Scalar(s)) => Ok(x.to_dtype(dtype)?.pow(s)?.into()),
        (Operand::Scalar(_), Operand::Scalar(_)) => Err(Error::type_error("float_power: at least one argument must be a Tensor")),
        (x, e) => Ok(wide(x)?.pow(&wide(e)?)?.into()),
    }
}

pub(super) static OPS: &[Op] = &[
    pointwise("deg2rad(Tensor self) -> Tensor", &DEG2RAD).doc("Degrees to radians.").samples(&["T(2,3)"]).reference(|x| x[0].to_radians()),
    pointwise("rad2deg(Tensor self) -> Tensor", &RAD2DEG).doc("Radians to degrees.").samples(&["T(2,3)"]).reference(|x| x[0].to_degrees()),
    pointwise("copysign(Tensor self, Tensor other) -> Tensor", &COPYSIGN)
        .numbers(0b10)
        .doc("Magnitude of `self` with the sign of `other`.")
        .samples(&["T(2,3), T(3)", "T(2,3), -2.0"])
        .reference(|x| x[0].copysign(x[1])),
    pointwise("hypot(Tensor self, Tensor other) -> Tensor", &HYPOT)
        .numbers(0)
        .doc("`sqrt(self**2 + other**2)` without overflow on the way.")
        .samples(&["T(2,3), T(3)"])
        .reference(|x| x[0].hypot(x[1])),
    pointwise("nextafter(Tensor self, Tensor other) -> Tensor", &NEXTAFTER)
        .numbers(0)
        .doc("The next number of the dtype after `self` towards `other`.")
        .samples(&["T(2,3), T(3)"]),
    pointwise("gcd(Tensor self, Tensor other) -> Tensor", &GCD)
        .numbers(0)
        .doc("Greatest common divisor of integers, not negative.")
        .samples(&["I(2,3; -9..9), I(3; 0..9)"]),
    pointwise("lcm(Tensor self, Tensor other) -> Tensor", &LCM)
        .numbers(0)
        .doc("Least common multiple of integers, not negative.")
        .samples(&["I(2,3; -9..9), I(3; 0..9)"]),
    function("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", frexp)
        .doc("Mantissa, of magnitude in [0.5, 1), and `int32` exponent: `self = mantissa * 2**exponent`.")
        .samples(&["T(2,3)"]),
    function("ldexp(Tensor self, Tensor other) -> Tensor", ldexp)
        .doc("`self * 2**other`, element by element.")
        .samples(&["T(2,3), I(3; -3..3)", "T(2,3), T(3)"])
        .with_inplace(),
    function("float_power(Tensor self, Tensor exponent) -> Tensor", float_power)
        .doc("`self` to the power of `exponent` in double precision, complex where one of them is.")
        .samples(&["T(2,3; 0.5..2), T(3)", "T(2,3), 2", "2.5, T(2,3)"])
        .with_inplace(),
];

impl Tensor {
    /// `sqrt(x² + y²)` without overflow on the way.
    pub fn hypot<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&HYPOT, &[self.into(), other.into()])
    }

    /// Magnitude of `self` with the sign of `other`.
    pub fn copysign<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        call(&COPYSIGN, &[self.into(), other.into()])
    }
}
