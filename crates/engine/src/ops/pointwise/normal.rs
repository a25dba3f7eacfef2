//! The normal distribution's functions, and the scaled complementary error function.

use super::logarithmic::precise;
use super::{Rule, Spec, call, one};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Op, place, pointwise};
use flambeau_base::{DType, Result};
use flambeau_ir::Special;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

static ERFCX: Spec = Spec::new("special_erfcx", Rule::Float, |k, x| k.special(Special::Erfcx, x))
    .refuses(DType::is_complex)
    .vjp(Reads::both(0b1, 1), |cx, g| one(g.mul(&cx.tensor(0)?.mul(2.0)?.mul(&cx.output()?)?.sub(FRAC_2_SQRT_PI)?)));

/// `erfc(-x / sqrt(2)) / 2`.
static NDTR: Spec = Spec::new("special_ndtr", Rule::Float, |k, x| {
    let a = precise(k, x[0]);
    let (scale, half) = (k.like(a, -FRAC_1_SQRT_2), k.like(a, 0.5));
    let scaled = k.mul(a, scale);
    let tail = k.erfc(scaled);
    k.mul(tail, half)
})
.refuses(DType::is_complex)
.vjp(Reads::INPUT, |cx, g| one(g.mul(&density(&cx.tensor(0)?)?)));

/// The density of the normal distribution.
fn density(x: &Tensor) -> Result<Tensor> {
    x.square()?.mul(-0.5)?.exp()?.mul((2.0 * PI).sqrt().recip())
}

static LOG_NDTR: Spec = Spec::new("special_log_ndtr", Rule::Float, |k, x| k.special(Special::LogNdtr, x)).refuses(DType::is_complex).vjp(
    Reads::INPUT,
    |cx, g| {
        let scaled = call(&ERFCX, &[(&cx.tensor(0)?.mul(-FRAC_1_SQRT_2)?).into()])?;
        one(g.div(&scaled)?.mul((2.0 / PI).sqrt()))
    },
);

static NDTRI: Spec = Spec::new("special_ndtri", Rule::Float, |k, x| k.special(Special::Ndtri, x))
    .refuses(DType::is_complex)
    .vjp(Reads::OUTPUT, |cx, g| one(g.mul(&cx.output()?.square()?.mul(0.5)?.exp()?)?.mul((2.0 * PI).sqrt())));

pub(super) static OPS: &[Op] = &[
    pointwise("erfcx(Tensor self) -> Tensor", &ERFCX)
        .doc("`exp(self**2) * erfc(self)`, without overflow on the way.")
        .places(place::SPECIAL)
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("ndtr(Tensor self) -> Tensor", &NDTR)
        .doc("Distribution function of the standard normal.")
        .places(place::SPECIAL)
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("log_ndtr(Tensor self) -> Tensor", &LOG_NDTR)
        .doc("Logarithm of the distribution function of the standard normal, accurate in its tail.")
        .places(place::SPECIAL)
        .samples(&["T(2,3)"])
        .without_inplace(),
    pointwise("ndtri(Tensor self) -> Tensor", &NDTRI)
        .doc("Quantile of the standard normal: infinite at 0 and 1, NaN outside.")
        .places(place::SPECIAL)
        .samples(&["T(2,3)"])
        .domain(0.05, 0.95)
        .without_inplace(),
];
