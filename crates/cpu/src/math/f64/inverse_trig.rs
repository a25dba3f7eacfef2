//! asin, acos, atan and atan2.

use super::{SIGN, fma, with_sign};
use crate::math::{estrin, poly_wide};

const PI_HI: f64 = std::f64::consts::PI;
const PI_LO: f64 = 2.0 * PI_2_LO;
const PI_2_HI: f64 = std::f64::consts::FRAC_PI_2;
const PI_2_LO: f64 = 6.123_233_995_736_766e-17;

/// asin(z) - z for z = sqrt(s) <= 1/2.
#[inline(always)]
fn asin_excess(z: f64, s: f64) -> f64 {
    let q = poly_wide!(s; 0.166_666_666_666_666_69, 0.074_999_999_999_980_22, 0.044_642_857_146_993_03,
        0.030_381_944_095_536_736, 0.022_372_174_502_858_49, 0.017_352_358_601_498_336, 0.013_971_691_376_518_849,
        0.011_474_729_566_879_8, 0.010_350_533_487_266_474, 0.005_343_024_748_664_678, 0.017_701_449_795_497_124,
        -0.015_306_038_502_548_976, 0.029_058_485_064_121_998);
    z * s * q
}

/// Inverse sine; NaN outside [-1, 1].
#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let a = x.abs();
    let near = a < 0.5;
    // Above 1/2: π/2 - 2 asin(sqrt((1 - a) / 2)).
    let s = if near { a * a } else { fma(-0.5, a, 0.5) };
    let z = if near { a } else { s.sqrt() };
    let e = asin_excess(z, s);
    let far = PI_2_HI - 2.0 * (z + (e - 0.5 * PI_2_LO));
    (if near { z + e } else { far }).copysign(x)
}

/// Inverse cosine; NaN outside [-1, 1].
#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let a = x.abs();
    let near = a < 0.5;
    let s = if near { a * a } else { fma(-0.5, a, 0.5) };
    let z = if near { a } else { s.sqrt() };
    let e = asin_excess(z, s);
    let middle = PI_2_HI - (x + (with_sign(e, x) - PI_2_LO));
    let far = if x < 0.0 { PI_HI - (2.0 * z + (2.0 * e - PI_LO)) } else { 2.0 * (z + e) };
    if near { middle } else { far }
}

/// atan(numerator / denominator) for a non-negative, finite quotient, as a multiple of π/4 and the rest.
///
/// One division brings the quotient t to within tan(π/8): as it stands, as (t - 1) / (t + 1) or as -1 / t.
#[inline(always)]
fn atan_quotient(numerator: f64, denominator: f64) -> (f64, f64) {
    let above_low = numerator > 0.414_213_562_373_095_1 * denominator;
    let above_high = numerator > 2.414_213_562_373_095 * denominator;
    let n = if above_low { numerator - denominator } else { numerator };
    let d = if above_low { numerator + denominator } else { denominator };
    let n = if above_high { -denominator } else { n };
    let d = if above_high { numerator } else { d };
    let t = n / d;
    let s = t * t;
    let q = poly_wide!(s; -0.333_333_333_333_333_3, 0.199_999_999_999_962_37, -0.142_857_142_847_722_86,
        0.111_111_110_221_007_64, -0.090_909_048_149_583_64, 0.076_921_880_249_602_8, -0.066_645_724_659_200_3,
        0.058_586_304_082_490_44, -0.050_877_614_918_645_72, 0.039_293_406_621_727_055, -0.019_247_235_536_997_215);
    let high = if above_high { PI_2_HI } else { 0.5 * PI_2_HI };
    let low = if above_high { PI_2_LO } else { 0.5 * PI_2_LO };
    let high = if above_low { high } else { 0.0 };
    let low = if above_low { low } else { 0.0 };
    (high, t + fma(t * s, q, low))
}

/// Inverse tangent.
#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let a = x.abs();
    let (high, rest) = atan_quotient(a, 1.0);
    let y = if a == f64::INFINITY { PI_2_HI } else { high + rest };
    with_sign(y, x)
}

/// The angle of the point (x, y), in [-π, π]; signs of zero and infinities as in IEEE 754.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (ax, ay) = (x.abs(), y.abs());
    // Keep sums finite, products normal: both by the same power of two.
    let high = if ay > ax { ay } else { ax };
    let scale = if high > 1e300 { 1e-16 } else { 1.0 };
    let scale = if high < 1e-290 { 9_007_199_254_740_992.0 } else { scale };
    let (n, d) = (ay * scale, ax * scale);
    let both_infinite = (ax == f64::INFINITY) & (ay == f64::INFINITY);
    let n = if both_infinite | ((ay == f64::INFINITY) & (ax < f64::INFINITY)) { 1.0 } else { n };
    let d = if both_infinite | (high == 0.0) { 1.0 } else { d };
    let d = if (ay == f64::INFINITY) & (ax < f64::INFINITY) { 0.0 } else { d };
    let (high, rest) = atan_quotient(n, d);
    let left = x.to_bits() & SIGN != 0;
    let high = if left { PI_HI - high } else { high };
    let rest = if left { PI_LO - rest } else { rest };
    let r = high + rest;
    // A comparison with NaN picks a side: let NaN through.
    let r = if x.is_nan() | y.is_nan() { f64::NAN } else { r };
    r.copysign(y)
}
