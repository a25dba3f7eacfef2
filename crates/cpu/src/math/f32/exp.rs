//! exp and what is one step from it: exp2, expm1, sigmoid, silu.

use super::{ROUND, clamp, fma, with_sign};
use crate::math::poly;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 as the sum of two floats.
pub(super) const LN2_HI: f32 = std::f32::consts::LN_2;
pub(super) const LN2_LO: f32 = -1.904_654_3e-9;

/// e^x as a number near 1 and the integer exponent in the low bits of the second value.
///
/// |x| must stay below 2^21 or so, or be NaN.
#[inline(always)]
pub(super) fn exp_parts(x: f32) -> (f32, u32) {
    let (r, bits) = exp_reduce(x);
    (1.0 + expm1_core(r), bits)
}

/// [`exp_parts`] of x + lo for a small `lo`, the number near 1 as a sum of two.
#[inline(always)]
pub(super) fn exp_parts_wide(x: f32, lo: f32) -> Wide {
    let shifted = fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let whole = fma(-n, LN2_HI, x);
    let rest = fma(-n, LN2_LO, lo);
    let r = whole + rest;
    let r_lo = rest - (r - whole);
    // e^r = 1 + r + r² q, the first sum with its rounding error.
    let sum = 1.0 + r;
    let lost = (1.0 - sum) + r;
    let small = fma(r * r, exp_quotient(r), fma(sum, r_lo, lost));
    let p = sum + small;
    Wide { p, p_lo: small - (p - sum), n: shifted.to_bits() }
}

/// (p + p_lo) 2^n, n in the low bits.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    pub p: f32,
    pub p_lo: f32,
    pub n: u32,
}

impl Wide {
    /// The value, rounded.
    #[inline(always)]
    pub fn value(self) -> f32 {
        scale_down(self.p, self.n)
    }

    /// The product with y + y_lo, rounded.
    #[inline(always)]
    pub fn times(self, y: f32, y_lo: f32) -> f32 {
        scale_down(fma(self.p, y, fma(self.p, y_lo, self.p_lo * y)), self.n)
    }
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
    fma(r * r, exp_quotient(r), r)
}

/// (e^r - 1 - r) / r² for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_quotient(r: f32) -> f32 {
    poly!(r; 0.5, 0.166_665_76, 0.041_666_467, 0.008_363_253, 0.001_393_497_1)
}

/// `p` · 2^n, rounded once, for n in the low bits of `bits` and -190 < n < 190; `low` where n may be below -126,
/// else n may be above 127.
#[inline(always)]
fn scale(p: f32, bits: u32, low: bool) -> f32 {
    const UP: f32 = 18_446_744_073_709_551_616.0;
    let bias = if low { (127 + 64) << 23 } else { (127 - 64) << 23 };
    let rest = if low { 1.0 / UP } else { UP };
    p * f32::from_bits((bits << 23).wrapping_add(bias)) * rest
}

/// `p` · 2^n for n <= 64 in the low bits of `bits`, rounded once even where the result is subnormal.
#[inline(always)]
pub(super) fn scale_down(p: f32, bits: u32) -> f32 {
    scale(p, bits, true)
}

/// 2^n for -126 <= n <= 127 in the low bits of `bits`.
#[inline(always)]
pub(super) fn power_of_two(bits: u32) -> f32 {
    f32::from_bits((bits << 23).wrapping_add(127 << 23))
}

/// e^(2 b) + 1 for 0 <= b <= 40.
#[inline(always)]
pub(super) fn exp_double_plus_one(b: f32) -> f32 {
    let shifted = fma(b, 2.0 * LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(-n, 0.5 * LN2_HI, b);
    let r = fma(-n, 0.5 * LN2_LO, r);
    // The coefficients of [`exp_quotient`] for 2 r.
    let p = poly!(r; 1.0, 2.0, 2.0, 1.333_326_1, 0.666_663_47, 0.267_624_1, 0.089_183_815);
    fma(p, power_of_two(shifted.to_bits()), 1.0)
}

/// e^x.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Where the result is zero, nothing is to underflow on the way to it: that takes processors a hundred cycles.
    let gone = x < -104.0;
    let (p, n) = exp_parts(clamp(if gone { 0.0 } else { x }, -104.0, 89.0));
    let y = scale(p, n, x < 0.0);
    if gone { 0.0 } else { y }
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
    let z = exp_neg_abs(x).value();
    // y / (1 + z) as y - y z / (1 + z), so that the roundings of the quotient count little.
    let y = if x < 0.0 { z } else { 1.0 };
    fma(-y, z / (1.0 + z), y)
}

/// x · sigmoid(x); -0 at negative infinity.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    // -inf · 0 would be NaN.
    gate(if x < -110.0 { -110.0 } else { x }, exp_neg_abs(x))
}

/// x / (1 + e) for negative x, where 1 / e = `inverse`, x / (1 + 1 / e) else: a gate that is 1 far out on the positive
/// side, e being the exponential of something even in x.
#[inline(always)]
pub(super) fn gate(x: f32, inverse: Wide) -> f32 {
    let negative = x < 0.0;
    let factor = if negative { inverse.p } else { 1.0 };
    let y = x * factor;
    let y_lo = fma(x, factor, -y);
    // One step of Newton on the quotient.
    let z = inverse.value();
    let d = 1.0 + z;
    let d_lo = z - (d - 1.0);
    let w = 1.0 / d;
    let q = y * w;
    let residue = fma(-q, d, y) + fma(-q, d_lo, y_lo);
    let q = fma(residue, w, q);
    // The residue of infinity is NaN, that of -0 may turn its sign.
    let positive = if x < f32::INFINITY { q } else { x };
    with_sign(if negative { scale_down(q, inverse.n) } else { positive }, x)
}

/// e^-|x| in parts.
#[inline(always)]
fn exp_neg_abs(x: f32) -> Wide {
    let a = -x.abs();
    exp_parts_wide(if a < -110.0 { -110.0 } else { a }, 0.0)
}

/// Derivative of [`silu`]: σ(x) (1 + x σ(-x)), accurate also around its zero.
#[inline(always)]
pub fn silu_derivative(x: f32) -> f32 {
    const ZERO: [f32; 2] = [1.278_464_6, -1.297_928_2e-8];
    let e = exp_neg_abs(x);
    let a = x.abs();
    let t = if a > 110.0 { 110.0 } else { a };
    // At -t it is z b / (1 + z)² for z = e^-t and b = 1 + z - t.
    let v = t - 1.3;
    let q = poly!(v; -1.275_487_5, 0.137_249_35, -0.045_667_4, 0.011_404_736, -0.002_279_647_2, 0.000_379_328_35,
        -5.390_534e-5, 7.062_049_5e-6, -8.527_699e-7);
    let near = t < 2.6;
    let (b, b_lo) = around_zero(t, ZERO, q);
    let far = (1.0 + e.value()) - t;
    gate_derivative(x, e, if near { b } else { far }, if near { b_lo } else { 0.0 })
}

/// (t - zero) q as the sum of two, the zero being one.
#[inline(always)]
pub(super) fn around_zero(t: f32, zero: [f32; 2], q: f32) -> (f32, f32) {
    let d = t - zero[0];
    let d_lo = ((t - d) - zero[0]) - zero[1];
    let b = d * q;
    (b, fma(d, q, -b) + d_lo * q)
}

/// The derivative of a [`gate`] from the factor b: z b / (1 + z)² for negative x, 1 less that else.
#[inline(always)]
pub(super) fn gate_derivative(x: f32, inverse: Wide, b: f32, b_lo: f32) -> f32 {
    let z = inverse.value();
    let d = 1.0 + z;
    let d_lo = (z - (d - 1.0)) + scale_down(inverse.p_lo, inverse.n);
    let w = 1.0 / d;
    let epsilon = fma(-w, d_lo, fma(-w, d, 1.0));
    let square = w * w;
    let square_lo = fma(2.0 * epsilon, square, fma(w, w, -square));
    let y = square * b;
    let y_lo = fma(square, b, -y) + fma(square, b_lo, square_lo * b);
    let tail = inverse.times(y, y_lo);
    if x < 0.0 { tail } else { 1.0 - tail }
}
