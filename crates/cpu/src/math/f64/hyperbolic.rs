//! Hyperbolic functions and their inverses.

use super::exp::{exp_reduce, expm1_core, expm1_signless};
use super::log::{log, log1p_finite};
use super::{fma, with_sign};
use crate::math::{estrin, poly_wide};

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    // tanh(20) is 1 within a quarter of a unit in the last place.
    let b = if a > 20.0 { 20.0 } else { a };
    let e = expm1_signless(2.0 * b);
    let d = e + 2.0;
    let d_lo = if e > 2.0 { 2.0 - (d - e) } else { e - (d - 2.0) };
    let q = e / d;
    // The quotient by d + d_lo; 1 / d is (1 - q) / 2.
    with_sign(fma(-q * d_lo, fma(-0.5, q, 0.5), q), x)
}

/// e^a / 4 for a >= 0; infinite from where e^a / 2 is.
#[inline(always)]
fn quarter_exp(a: f64) -> f64 {
    let (r, bits) = exp_reduce(if a > 710.9 { 710.9 } else { a });
    (1.0 + expm1_core(r)) * f64::from_bits((bits << 52).wrapping_add(1021 << 52))
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let a = x.abs();
    let s = x * x;
    let q = poly_wide!(s; 0.166_666_666_666_666_66, 0.008_333_333_333_333_777, 0.000_198_412_698_406_483_5,
        2.755_731_961_461_230_5e-6, 2.505_197_818_222_181e-8, 1.608_366_332_967_357_4e-10, 4.995_894_945_077_588e-13,
        1.543_097_532_906_035_2e-13, -3.563_787_467_019_083_4e-14);
    let near = fma(a * s, q, a);
    let e = quarter_exp(a);
    let far = 2.0 * (e - 0.0625 / e);
    with_sign(if a < 1.0 { near } else { far }, x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let e = quarter_exp(x.abs());
    2.0 * (e + 0.0625 / e)
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let s = x * x;
    let q = poly_wide!(s; -0.166_666_666_666_666_66, 0.074_999_999_999_995, -0.044_642_857_142_129_66,
        0.030_381_944_397_565_728, -0.022_372_157_434_784_018, 0.017_352_728_407_794_425, -0.013_964_326_814_777_064,
        0.011_546_685_050_629_35, -0.009_725_747_345_327_567, 0.008_209_584_296_431_312, -0.006_653_837_558_007_225,
        0.004_714_360_784_604_049, -0.002_463_366_056_684_641_6, 0.000_673_761_996_534_572_1);
    let near = fma(a * s, q, a);
    let y = log_sum(a, fma(a, a, 1.0).sqrt());
    with_sign(if a < 0.6 { near } else { y }, x)
}

/// log(a + w) for a > 1/2 and w = sqrt(a² + 1), with the rounding of the sum mended.
#[inline(always)]
fn log_sum(a: f64, w: f64) -> f64 {
    let sum = a + w;
    let lost = a - (sum - w);
    let big = a > 1_099_511_627_776.0;
    let y = log(if big { a } else { sum });
    // 1 / (a + w) is w - a. Beyond 2^40, w is a.
    if big { y + std::f64::consts::LN_2 } else { fma(lost, w - a, y) }
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    let w = fma(t, t, 2.0 * t).sqrt();
    let sum = t + w;
    // 1 / (1 + t + w) is x - w.
    let near = fma(t - (sum - w), x - w, log1p_finite(sum));
    let big = x > 1_099_511_627_776.0;
    let far = log(if big { x } else { 2.0 }) + std::f64::consts::LN_2;
    let y = if big { far } else { near };
    if x >= 1.0 { y } else { f64::NAN }
}

/// Inverse hyperbolic tangent; ±inf at ±1, NaN beyond.
#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let s = x * x;
    let q = poly_wide!(s; 0.333_333_333_333_333_3, 0.200_000_000_000_015_67, 0.142_857_142_853_800_27,
        0.111_111_111_418_544_09, 0.090_909_075_645_184_98, 0.076_923_537_883_035_1, 0.066_657_586_945_109_91,
        0.058_945_125_953_365_5, 0.051_499_528_531_867_19, 0.054_992_019_582_615_737, 0.010_232_670_014_696_455,
        0.140_377_412_961_015, -0.151_036_743_006_613_01, 0.214_925_191_478_571_17);
    let near = fma(a * s, q, a);
    let far = 0.5 * log((1.0 + a) / (1.0 - a));
    (if a < 0.5 { near } else { far }).copysign(x)
}
