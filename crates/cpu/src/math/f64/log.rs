//! Logarithms, and softplus and logsigmoid on top of them.

use super::exp::{LN2_HI, LN2_LO, exp_parts_wide};
use super::fma;
use crate::math::{estrin, poly_wide};

const TWO_52: f64 = 4_503_599_627_370_496.0;

/// x = (1 + f) · 2^e with 1 + f in [2/3, 4/3), for finite positive `x`.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let y = if tiny { x * TWO_52 } else { x };
    let bias = if tiny { TWO_52 + 1023.0 + 52.0 } else { TWO_52 + 1023.0 };
    let biased = biased_exponent(y);
    let m = f64::from_bits(y.to_bits().wrapping_sub((biased << 52).wrapping_sub(1023 << 52)));
    (m - 1.0, integer(biased) - bias)
}

/// e + 1023 for x = m · 2^e, m in [2/3, 4/3).
#[inline(always)]
fn biased_exponent(x: f64) -> u64 {
    x.to_bits().wrapping_sub(0x3fe5_5555_5555_5555).wrapping_add(1023 << 52) >> 52
}

/// 2^52 + i for 0 <= i < 2^52, since few machines convert such integers in vectors.
#[inline(always)]
fn integer(i: u64) -> f64 {
    f64::from_bits(i | 0x4330_0000_0000_0000)
}

/// Puts the limits right: -inf at 0, NaN below, inf and NaN as they are.
#[inline(always)]
fn log_limits(x: f64, y: f64) -> f64 {
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x > 0.0 { y } else { f64::NAN };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// log(1 + f) - f for 1 + f in [2/3, 4/3).
#[inline(always)]
fn log1p_excess(f: f64) -> f64 {
    let q = poly_wide!(f; -0.5, 0.333_333_333_333_333_3, -0.249_999_999_999_999_17, 0.200_000_000_000_062_07,
        -0.166_666_666_667_168_26, 0.142_857_142_837_123_45, -0.124_999_999_910_635_62, 0.111_111_113_481_715_8,
        -0.100_000_007_331_588_47, 0.090_908_951_016_169_87, -0.083_333_001_729_832_23, 0.076_927_767_905_427_66,
        -0.071_437_596_806_061_07, 0.066_571_796_560_267_36, -0.062_346_296_771_429_86, 0.059_996_988_860_400_3,
        -0.057_197_416_975_011_7, 0.044_039_489_358_740_094, -0.039_433_858_930_067_07, 0.080_755_597_372_461_82,
        -0.081_643_024_111_158_08);
    f * f * q
}

#[inline(always)]
fn log_from_parts(f: f64, e: f64) -> f64 {
    fma(e, LN2_HI, fma(e, LN2_LO, f + log1p_excess(f)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    let (f, e) = split(x);
    log_limits(x, log_from_parts(f, e))
}

/// Logarithm to base 2, exact for powers of 2.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    const LO: f64 = 2.035_527_374_093_103_3e-17;
    let (f, e) = split(x);
    let low = fma(f, LO, log1p_excess(f) * std::f64::consts::LOG2_E);
    log_limits(x, e + fma(f, std::f64::consts::LOG2_E, low))
}

/// Logarithm to base 10.
#[inline(always)]
pub fn log10(x: f64) -> f64 {
    const LO: f64 = 1.098_319_650_216_765e-17;
    const TWO_LO: f64 = -2.803_728_127_785_170_4e-18;
    let (f, e) = split(x);
    let low = fma(f, LO, log1p_excess(f) * std::f64::consts::LOG10_E);
    let y = fma(f, std::f64::consts::LOG10_E, low);
    log_limits(x, fma(e, std::f64::consts::LOG10_2, fma(e, TWO_LO, y)))
}

/// log(1 + x) without cancellation.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let y = log1p_finite(x);
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x > -1.0 { y } else { f64::NAN };
    let y = if x == -1.0 { f64::NEG_INFINITY } else { y };
    y.copysign(x)
}

/// log(1 + x) for finite x > -1, but for the sign of zero.
#[inline(always)]
pub(super) fn log1p_finite(x: f64) -> f64 {
    let biased = biased_exponent(1.0 + x);
    let k = (biased << 52).wrapping_sub(1023 << 52);
    // f = (1 + x) / 2^e - 1, term by term; four times 2^-e stays a normal number up to e = 1024.
    let scale = f64::from_bits(0x4010_0000_0000_0000_u64.wrapping_sub(k));
    let scaled_x = f64::from_bits(x.to_bits().wrapping_sub(k));
    let f = fma(0.25, scale, -1.0) + scaled_x;
    // e ln 2 + f with its rounding error: where the two cancel, log(1 + f) would lose a bit.
    let e = integer(biased) - (TWO_52 + 1023.0);
    let sum = fma(e, LN2_HI, f);
    let lost = fma(e, LN2_HI, -sum) + f;
    sum + (lost + fma(e, LN2_LO, log1p_excess(f)))
}

/// log(1 + e^x), the smooth maximum of 0 and x.
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    // NaN fails the comparison, so it must pass through the second branch.
    (if x < 0.0 { 0.0 } else { x }) + log1p_exp_neg(x.abs())
}

/// log(1 / (1 + e^-x)).
#[inline(always)]
pub fn logsigmoid(x: f64) -> f64 {
    (if x > 0.0 { 0.0 } else { x }) - log1p_exp_neg(x.abs())
}

/// log(1 + e^-a) for a >= 0.
#[inline(always)]
fn log1p_exp_neg(a: f64) -> f64 {
    log1p_finite(exp_parts_wide(if a > 760.0 { -760.0 } else { -a }, 0.0).value())
}
