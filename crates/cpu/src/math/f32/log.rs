//! Logarithms, and softplus and logsigmoid on top of them.

use super::exp::{LN2_HI, LN2_LO, exp_parts_wide};
use super::fma;
use crate::math::poly;

/// x = (1 + f) · 2^e with 1 + f in [2/3, 4/3), for finite positive `x`.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let y = if tiny { x * 8_388_608.0 } else { x };
    let bias = if tiny { -23.0 } else { 0.0 };
    let k = exponent_bits(y);
    let m = f32::from_bits(y.to_bits().wrapping_sub(k));
    (m - 1.0, fma(k as i32 as f32, 1.0 / 8_388_608.0, bias))
}

/// The exponent e of x = m · 2^e, m in [2/3, 4/3), in place (shifted left by 23).
#[inline(always)]
fn exponent_bits(x: f32) -> u32 {
    x.to_bits().wrapping_sub(0x3f2a_aaab) & 0xff80_0000
}

/// Puts the limits right: -inf at 0, NaN below, inf and NaN as they are.
#[inline(always)]
fn log_limits(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x > 0.0 { y } else { f32::NAN };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// log(1 + f) for 1 + f in [2/3, 4/3).
#[inline(always)]
fn log1p_core(f: f32) -> f32 {
    let q = poly!(f; -0.5, 0.333_332_72, -0.249_998_18, 0.200_073_05, -0.166_801_36, 0.140_544_77, -0.121_833_116,
        0.137_553_5, -0.129_147_53);
    fma(f * f, q, f)
}

#[inline(always)]
fn log_from_parts(f: f32, e: f32) -> f32 {
    fma(e, LN2_HI, fma(e, LN2_LO, log1p_core(f)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (f, e) = split(x);
    log_limits(x, log_from_parts(f, e))
}

/// Logarithm to base 2, exact for powers of 2.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (f, e) = split(x);
    let q = poly!(f; 3.094_515e-8, -0.721_346_56, 0.480_894_1, -0.360_788_7, 0.288_796_04, -0.236_799_93, 0.200_579_63,
        -0.222_158_5, 0.208_273_81);
    log_limits(x, e + fma(f, std::f32::consts::LOG2_E, f * q))
}

/// Logarithm to base 10.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    const LO: f32 = -1.432_098_9e-8;
    let (f, e) = split(x);
    let q = poly!(f; -6.577_681_5e-9, -0.217_146_95, 0.144_763_54, -0.108_608_39, 0.086_936_31, -0.071_281_284,
        0.060_380_034, -0.066_888_615, 0.062_698_334);
    let y = fma(f, std::f32::consts::LOG10_E, f * q);
    log_limits(x, fma(e, std::f32::consts::LOG10_2, fma(e, LO, y)))
}

/// log(1 + x) without cancellation.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let y = log1p_finite(x);
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x > -1.0 { y } else { f32::NAN };
    let y = if x == -1.0 { f32::NEG_INFINITY } else { y };
    y.copysign(x)
}

/// log(1 + x) for finite x > -1, but for the sign of zero.
#[inline(always)]
pub(super) fn log1p_finite(x: f32) -> f32 {
    let k = exponent_bits(1.0 + x);
    // f = (1 + x) / 2^e - 1, term by term; four times 2^-e stays a normal number up to e = 128.
    let scale = f32::from_bits(0x4080_0000_u32.wrapping_sub(k));
    let scaled_x = f32::from_bits(x.to_bits().wrapping_sub(k));
    let f = fma(0.25, scale, -1.0) + scaled_x;
    log_from_parts(f, k as i32 as f32 * (1.0 / 8_388_608.0))
}

/// log(1 + e^x), the smooth maximum of 0 and x.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    // NaN fails the comparison, so it must pass through the second branch.
    (if x < 0.0 { 0.0 } else { x }) + log1p_exp_neg(x.abs())
}

/// log(1 / (1 + e^-x)).
#[inline(always)]
pub fn logsigmoid(x: f32) -> f32 {
    (if x > 0.0 { 0.0 } else { x }) - log1p_exp_neg(x.abs())
}

/// log(1 + e^-a) for a >= 0.
#[inline(always)]
fn log1p_exp_neg(a: f32) -> f32 {
    log1p_finite(exp_parts_wide(if a > 110.0 { -110.0 } else { -a }, 0.0).value())
}
