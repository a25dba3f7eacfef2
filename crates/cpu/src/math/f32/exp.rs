//! exp and what is one step from it: exp2, expm1, sigmoid, silu.

use super::{ROUND, clamp, fma};
use crate::math::poly;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 as the sum of two floats.
pub(super) const LN2_HI: f32 = std::f32::consts::LN_2;
pub(super) const LN2_LO: f32 = -1.904_654_3e-9;

/// e^(x + lo) for a small `lo`, as a number near 1 and the integer exponent in the low bits of the second value.
///
/// |x| must stay below 2^21 or so, or be NaN.
#[inline(always)]
pub(super) fn exp_parts(x: f32, lo: f32) -> (f32, u32) {
    let (r, bits) = exp_reduce(x);
    (1.0 + expm1_core(r + lo), bits)
}

/// Cody and Waite: `x` less the nearest multiple of ln 2, and that multiple.
#[inline(always)]
pub(super) fn exp_reduce(x: f32) -> (f32, u32) {
    let shifted = fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(-n, LN2_HI, x);
    (fma(-n, LN2_LO, r), shifted.to_bits())
}

/// e^r - 1 for |r| <= ln 2 / 2.
#[inline(always)]
pub(super) fn expm1_core(r: f32) -> f32 {
    let q = poly!(r; 0.5, 0.166_665_76, 0.041_666_467, 0.008_363_253, 0.001_393_497_1);
    fma(r * r, q, r)
}

/// `p` · 2^n, rounded once, for n in the low bits of `bits` and -190 < n < 190; `low` where n may be below -126,
/// else n may be above 127.
#[inline(always)]
fn scale(p: f32, bits: u32, low: bool) -> f32 {
    const UP: f32 = 18_446_744_073_709_551_616.0;
    let bias = if low {
        (127 + 64) << 23
    } else {
        (127 - 64) << 23
    };
    let rest = if low { 1.0 / UP } else { UP };
    p * f32::from_bits((bits << 23).wrapping_add(bias)) * rest
}

/// `p` · 2^n for n <= 64 in the low bits of `bits`, rounded once even where the result is subnormal.
#[inline(always)]
pub(super) fn scale_down(p: f32, bits: u32) -> f32 {
    scale(p, bits, true)
}

/// `p` · 2^n for -126 <= n <= 127 in the low bits of `bits`.
#[inline(always)]
pub(super) fn scale_normal(p: f32, bits: u32) -> f32 {
    p * f32::from_bits((bits << 23).wrapping_add(127 << 23))
}

/// e^x.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (p, n) = exp_parts(clamp(x, -104.0, 89.0), 0.0);
    scale(p, n, x < 0.0)
}

/// 2^x, exact for integers.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    let q = poly!(r; std::f32::consts::LN_2, 0.240_226_5, 0.055_503_66, 0.009_618_077, 0.001_338_807, 0.000_154_564_29);
    scale(fma(r, q, 1.0), shifted.to_bits(), x < 0.0)
}

/// e^x - 1 without cancellation.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (r, bits) = exp_reduce(clamp(x, -18.0, 89.0));
    let p = expm1_core(r);
    // Half of 2^n, since n reaches 128.
    let half = f32::from_bits((bits << 23).wrapping_add(126 << 23));
    let y = 2.0 * fma(p, half, half - 0.5);
    let y = if half == 0.5 { p } else { y };
    y.copysign(x)
}

/// 1 / (1 + e^-x), accurate in both tails.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (numerator, denominator) = sigmoid_parts(x);
    numerator / denominator
}

/// x · sigmoid(x); -0 at negative infinity.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let (numerator, denominator) = sigmoid_parts(x);
    // Below -110 the result is -0, and -inf · 0 would be NaN.
    clamp_low(x) * numerator / denominator
}

#[inline(always)]
pub(super) fn clamp_low(x: f32) -> f32 {
    if x < -110.0 { -110.0 } else { x }
}

/// sigmoid(x) as a quotient: with z = e^-|x|, 1 / (1 + z) or z / (1 + z).
#[inline(always)]
fn sigmoid_parts(x: f32) -> (f32, f32) {
    let a = -x.abs();
    let (p, n) = exp_parts(if a < -110.0 { -110.0 } else { a }, 0.0);
    let z = scale_down(p, n);
    (if x < 0.0 { z } else { 1.0 }, 1.0 + z)
}

/// Derivative of [`silu`]: σ(x) (1 + x σ(-x)).
#[inline(always)]
pub fn silu_derivative(x: f32) -> f32 {
    let t = clamp(x, -110.0, 110.0);
    sigmoid(t) * fma(t, sigmoid(-t), 1.0)
}
