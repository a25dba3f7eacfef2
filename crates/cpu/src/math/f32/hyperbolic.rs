//! Hyperbolic functions and their inverses.

use super::exp::{exp_double_plus_one, exp_reduce, expm1_core};
use super::log::{log, log1p_finite};
use super::{fma, with_sign};
use crate::math::poly;

/// Hyperbolic tangent: a polynomial below 0.6, 1 - 2 / (e^(2x) + 1) above.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let q = poly!(s; -0.333_333_3, 0.133_329_63, -0.053_879_373, 0.021_132_784, -0.006_297_663_3);
    let near = fma(a * s, q, a);
    // tanh(10) is below 1 by less than a quarter of a unit in the last place.
    let b = if a > 10.0 { 10.0 } else { a };
    let far = 1.0 - 2.0 / exp_double_plus_one(b);
    with_sign(if a < 0.6 { near } else { far }, x)
}

/// e^a / 4 for a >= 0; infinite from where e^a / 2 is.
#[inline(always)]
fn quarter_exp(a: f32) -> f32 {
    let (r, bits) = exp_reduce(if a > 89.7 { 89.7 } else { a });
    (1.0 + expm1_core(r)) * f32::from_bits((bits << 23).wrapping_add(125 << 23))
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let q = poly!(s; 0.166_666_67, 0.008_333_298, 0.000_198_463_59, 2.759_107_7e-6);
    let near = fma(a * s, q, a);
    let e = quarter_exp(a);
    let far = 2.0 * (e - 0.0625 / e);
    with_sign(if a < 1.0 { near } else { far }, x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let e = quarter_exp(x.abs());
    2.0 * (e + 0.0625 / e)
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let q = poly!(s; -0.166_666_67, 0.074_999_936, -0.044_635_68, 0.030_275_924, -0.021_681_199, 0.014_850_851,
        -0.008_356_873, 0.003_150_365, -0.000_563_069_13);
    let near = fma(a * s, q, a);
    let y = log_sum(a, fma(a, a, 1.0).sqrt());
    with_sign(if a < 1.0 { near } else { y }, x)
}

/// log(a + w) for a >= 1 and w = sqrt(a² + 1), with the rounding of the sum mended.
#[inline(always)]
fn log_sum(a: f32, w: f32) -> f32 {
    let sum = a + w;
    let lost = a - (sum - w);
    let big = a > 1_048_576.0;
    let y = log(if big { a } else { sum });
    // 1 / (a + w) is w - a. Beyond 2^20, w is a.
    if big { y + std::f32::consts::LN_2 } else { fma(lost, w - a, y) }
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let t = x - 1.0;
    let w = fma(t, t, 2.0 * t).sqrt();
    let sum = t + w;
    // 1 / (1 + t + w) is x - w.
    let near = fma(t - (sum - w), x - w, log1p_finite(sum));
    let big = x > 1_048_576.0;
    let far = log(if big { x } else { 2.0 }) + std::f32::consts::LN_2;
    let y = if big { far } else { near };
    if x >= 1.0 { y } else { f32::NAN }
}

/// Inverse hyperbolic tangent; ±inf at ±1, NaN beyond.
#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let q = poly!(s; 0.333_333_3, 0.200_005_28, 0.142_623_08, 0.114_883_01, 0.064_099_04, 0.158_849_46);
    let near = fma(a * s, q, a);
    let far = 0.5 * log((1.0 + a) / (1.0 - a));
    (if a < 0.5 { near } else { far }).copysign(x)
}
