//! Functions made of logarithms and exponentials, and the cardinal sine.
//!
//! Numbers below `float64` are computed in that and rounded once.

use super::{Operand, Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, choose, place, pointwise};
use flambeau_base::{DType, Result};
use flambeau_ir::{Body, ScalarOp, Val};
use smallvec::{SmallVec, smallvec};
use std::f64::consts::PI;

/// A real number in `float64`.
pub(super) fn precise(k: &mut Body, x: Val) -> Val {
    if k.dtype(x).is_float() { k.convert(x, DType::F64) } else { x }
}

fn all<const N: usize>(k: &mut Body, x: &[Val]) -> [Val; N] {
    std::array::from_fn(|i| precise(k, x[i]))
}

static EXPM1: Spec = Spec::new("expm1", Rule::Float, |k, x| k.expm1(x[0])).vjp(Reads::OUTPUT, |cx, g| one(g.mul(&cx.output()?.add(1.0)?)));

/// The larger one plus `log(1 + base^(smaller - larger))`; equal infinities are themselves.
fn log_add(k: &mut Body, x: &[Val], power: ScalarOp, scale: f64) -> Val {
    let [a, b] = all(k, x);
    let dtype = k.dtype(a);
    if dtype.is_complex() {
        return log_add_complex(k, a, b);
    }
    let (larger, gap) = (k.maximum(a, b), k.sub(a, b));
    let gap = k.abs(gap);
    let gap = k.neg(gap);
    let small = k.step(power, dtype, [gap; 3]);
    let grown = k.log1p(small);
    let factor = k.like(a, scale);
    let grown = k.mul(grown, factor);
    let sum = k.add(larger, grown);
    let (same, inf) = (k.eq(a, b), k.is_inf(a));
    let ends = k.and(same, inf);
    k.select(ends, a, sum)
}

/// The one of larger real part plus the logarithm of 1 and the exponential of the difference.
fn log_add_complex(k: &mut Body, a: Val, b: Val) -> Val {
    let (ra, rb) = (k.real_part(a), k.real_part(b));
    let first = k.ge(ra, rb);
    let (large, small) = (k.select(first, a, b), k.select(first, b, a));
    let gap = k.sub(small, large);
    let grown = k.exp(gap);
    let grown = k.log1p(grown);
    k.add(large, grown)
}

/// `a - b`, and 0 for two infinities that are equal.
fn apart(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let same = a.alias().eq(&b.alias())?.logical_and(&a.alias().isinf()?)?;
    Tensor::where_(&same, 0, &a.sub(b)?)
}

static LOGADDEXP: Spec = Spec::new("logaddexp", Rule::Common, |k, x| log_add(k, x, ScalarOp::Exp, 1.0)).refuses(DType::is_integral).vjp(
    Reads::inputs(0b11),
    |cx, g| {
        let share = |i: usize, j: usize| g.div(&apart(&cx.tensor(j)?, &cx.tensor(i)?)?.exp()?.add(1.0)?);
        Ok(smallvec![cx.when(0, || share(0, 1))?, cx.when(1, || share(1, 0))?])
    },
);

static LOGADDEXP2: Spec = Spec::new("logaddexp2", Rule::Common, |k, x| log_add(k, x, ScalarOp::Exp2, std::f64::consts::LOG2_E))
    .refuses(|d| d.is_integral() || d.is_complex())
    .vjp(Reads::inputs(0b11), |cx, g| {
        let share = |i: usize, j: usize| g.div(&apart(&cx.tensor(j)?, &cx.tensor(i)?)?.exp2()?.add(1.0)?);
        Ok(smallvec![cx.when(0, || share(0, 1))?, cx.when(1, || share(1, 0))?])
    });

/// `log(x / (1 - x))`.
fn log_odds(k: &mut Body, a: Val) -> Val {
    let one = k.like(a, 1.0);
    let rest = k.sub(one, a);
    let odds = k.div(a, rest);
    k.log(odds)
}

static LOGIT: Spec = Spec::new("logit", Rule::Float, |k, x| {
    let a = precise(k, x[0]);
    log_odds(k, a)
})
.refuses(DType::is_complex)
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    let slope = g.div(&x.mul(&x.neg()?.add(1.0)?)?)?;
    let outside = x.lt(0.0)?.logical_or(&x.gt(1.0)?)?;
    one(slope.masked_fill(&outside, f64::NAN))
});

/// Of values brought between eps and 1 - eps, the second operand.
static LOGIT_INSIDE: Spec = Spec::new("logit", Rule::Float, |k, x| {
    let (value, eps) = (k.widen(x[0]), k.widen(x[1]));
    let one = k.like(eps, 1.0);
    let end = k.sub(one, eps);
    // The lower end first: they may stand the wrong way round.
    let (low, high) = (k.lt(value, eps), k.gt(value, end));
    let cut = k.select(high, end, value);
    let inside = k.select(low, eps, cut);
    let inside = precise(k, inside);
    log_odds(k, inside)
})
.params(1)
.refuses(DType::is_complex)
.vjp(Reads::INPUT, |cx, g| {
    let (x, eps) = (cx.tensor(0)?, super::scalar_of(&cx.operand(1)?).to_f64());
    let slope = g.div(&x.mul(&x.neg()?.add(1.0)?)?)?;
    let outside = x.lt(eps)?.logical_or(&x.gt(1.0 - eps)?)?;
    Ok(smallvec![Some(slope.masked_fill(&outside, 0)?), None])
});

fn logit(a: &Args) -> Result<(&'static Spec, SmallVec<[Operand<'_>; 3]>)> {
    Ok(match a.opt_float(1)? {
        None => (&LOGIT, smallvec![a.operand(0)?]),
        Some(eps) => (&LOGIT_INSIDE, smallvec![a.operand(0)?, eps.into()]),
    })
}

/// `x * f(y)`; 0 where x is 0 and y is not NaN.
fn times_log(k: &mut Body, x: &[Val], f: ScalarOp) -> Val {
    let [a, b] = all(k, x);
    let dtype = k.dtype(a);
    let log = k.step(f, dtype, [b; 3]);
    let (product, zero) = (k.mul(a, log), k.like(a, 0.0));
    let (none, bad) = (k.eq(a, zero), k.is_nan(b));
    let quiet = k.select(none, zero, product);
    k.select(bad, b, quiet)
}

/// A gradient where neither the factor is 0 nor the logarithm undefined.
fn where_defined(g: &Tensor, x: &super::Arg, y: &super::Arg, end: f64) -> Result<Tensor> {
    let tensor = |a: &super::Arg| match a {
        super::Arg::Tensor(t) => Ok(t.clone()),
        super::Arg::Scalar(s) => Tensor::number(*s),
    };
    let still = tensor(x)?.eq(0.0)?.logical_and(&tensor(y)?.le(end)?)?;
    call(&super::select::WHERE, &[(&still).into(), 0.into(), g.into()])
}

fn log_of(a: &super::Arg, f: &'static Spec) -> Result<Tensor> {
    match a {
        super::Arg::Tensor(t) => call(f, &[t.into()]),
        super::Arg::Scalar(s) => call(f, &[(&Tensor::number(*s)?).into()]),
    }
}

static XLOGY: Spec =
    Spec::new("xlogy", Rule::Float, |k, x| times_log(k, x, ScalarOp::Log)).refuses(DType::is_complex).vjp(Reads::inputs(0b11), |cx, g| {
        let (x, y) = (cx.operand(0)?, cx.operand(1)?);
        Ok(smallvec![
            cx.when(0, || where_defined(g, &x, &y, 0.0)?.mul(&log_of(&y, &super::exponential::LOG)?))?,
            cx.when(1, || g.mul(&x)?.div(&y))?
        ])
    });

static XLOG1PY: Spec = Spec::new("special_xlog1py", Rule::Float, |k, x| times_log(k, x, ScalarOp::Log1p)).refuses(DType::is_complex).vjp(
    Reads::inputs(0b11),
    |cx, g| {
        let (x, y) = (cx.operand(0)?, cx.operand(1)?);
        let over = || match &y {
            super::Arg::Tensor(t) => g.mul(&x)?.div(&t.add(1.0)?),
            super::Arg::Scalar(s) => g.mul(&x)?.div(s.to_f64() + 1.0),
        };
        Ok(smallvec![cx.when(0, || where_defined(g, &x, &y, -1.0)?.mul(&log_of(&y, &super::exponential::LOG1P)?))?, cx.when(1, over)?])
    },
);

static SINC: Spec = Spec::new("sinc", Rule::Float, |k, x| {
    let a = precise(k, x[0]);
    let (half_turns, one) = (k.like(a, PI), k.like(a, 1.0));
    let angle = k.mul(a, half_turns);
    let wave = k.sin(angle);
    let (quotient, zero) = (k.div(wave, angle), k.like(a, 0.0));
    let at_zero = k.eq(a, zero);
    k.select(at_zero, one, quotient)
})
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    let angle = x.mul(PI)?;
    let slope = angle.cos()?.mul(&angle)?.sub(&angle.sin()?)?.div(&angle.mul(&x)?)?;
    one(g.mul(&slope.masked_fill(&x.eq(0.0)?, 0)?))
});

static ENTR: Spec = Spec::new("special_entr", Rule::Float, |k, x| {
    let a = precise(k, x[0]);
    let (zero, end) = (k.like(a, 0.0), k.like(a, f64::NEG_INFINITY));
    let log = k.log(a);
    let product = k.mul(a, log);
    let value = k.neg(product);
    let (at_zero, below) = (k.eq(a, zero), k.lt(a, zero));
    let value = k.select(at_zero, zero, value);
    k.select(below, end, value)
})
.refuses(DType::is_complex)
.vjp(Reads::INPUT, |cx, g| one(g.mul(&cx.tensor(0)?.log()?.neg()?.sub(1.0)?)));

const SPECIAL: u8 = place::TORCH | place::METHOD | place::SPECIAL;

pub(super) static OPS: &[Op] = &[
    pointwise("expm1(Tensor self) -> Tensor", &EXPM1)
        .doc("`exp(self) - 1`, accurate for small values.")
        .places(SPECIAL)
        .samples(&["T(2,3)"])
        .reference(|x| x[0].exp_m1()),
    pointwise("logaddexp(Tensor self, Tensor other) -> Tensor", &LOGADDEXP)
        .numbers(0)
        .doc("`log(exp(self) + exp(other))` without overflow on the way.")
        .samples(&["T(2,3), T(3)"])
        .reference(|x| (x[0].exp() + x[1].exp()).ln())
        .without_inplace(),
    pointwise("logaddexp2(Tensor self, Tensor other) -> Tensor", &LOGADDEXP2)
        .numbers(0)
        .doc("`log2(2**self + 2**other)` without overflow on the way.")
        .samples(&["T(2,3), T(3)"])
        .reference(|x| (x[0].exp2() + x[1].exp2()).log2())
        .without_inplace(),
    choose("logit(Tensor self, float? eps=None) -> Tensor", logit)
        .doc("`log(self / (1 - self))`, of values brought between `eps` and `1 - eps` where that is given.")
        .places(SPECIAL)
        .samples(&["T(2,3)", "T(2,3), 0.25"])
        .domain(0.1, 0.9),
    pointwise("xlogy(Tensor self, Tensor other) -> Tensor", &XLOGY)
        .doc("`self * log(other)`, and 0 where `self` is 0.")
        .places(SPECIAL)
        .samples(&["T(2,3), T(3; 0.5..2)", "T(2,3), 2.0", "1.5, T(2,3; 0.5..2)"])
        .reference(|x| x[0] * x[1].ln()),
    pointwise("xlog1py(Tensor self, Tensor other) -> Tensor", &XLOG1PY)
        .doc("`self * log1p(other)`, and 0 where `self` is 0.")
        .places(place::SPECIAL)
        .samples(&["T(2,3), T(3; -0.5..2)", "T(2,3), 2.0", "1.5, T(2,3; 0.5..2)"])
        .reference(|x| x[0] * x[1].ln_1p())
        .without_inplace(),
    pointwise("sinc(Tensor self) -> Tensor", &SINC).doc("`sin(pi * self) / (pi * self)`, and 1 at 0.").places(SPECIAL).samples(&["T(2,3)"]),
    pointwise("entr(Tensor self) -> Tensor", &ENTR)
        .doc("`-self * log(self)`: 0 at 0, minus infinity below.")
        .places(place::SPECIAL)
        .samples(&["T(2,3; 0.25..2)"])
        .without_inplace(),
];

impl Tensor {
    /// `exp(x) - 1`, accurate for small values.
    pub fn expm1(&self) -> Result<Tensor> {
        call(&EXPM1, &[self.into()])
    }
}
