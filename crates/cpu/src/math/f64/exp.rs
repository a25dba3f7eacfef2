//! exp and what is one step from it: exp2, expm1, sigmoid, silu.

use super::{ROUND, clamp, fma, with_sign};
use crate::math::{estrin, poly_wide};

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 as the sum of two doubles.
pub(super) const LN2_HI: f64 = std::f64::consts::LN_2;
pub(super) const LN2_LO: f64 = 2.319_046_813_846_299_6e-17;

/// e^x as a number near 1 and the integer exponent in the low bits of the second value.
///
/// |x| must stay below 2^50 or so, or be NaN.
#[inline(always)]
pub(super) fn exp_parts(x: f64) -> (f64, u64) {
    let (r, bits) = exp_reduce(x);
    (1.0 + expm1_core(r), bits)
}

/// [`exp_parts`] of x + lo for a small `lo`, the number near 1 as a sum of two.
#[inline(always)]
pub(super) fn exp_parts_wide(x: f64, lo: f64) -> Wide {
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
    pub p: f64,
    pub p_lo: f64,
    pub n: u64,
}

impl Wide {
    /// The value, rounded.
    #[inline(always)]
    pub fn value(self) -> f64 {
        scale_down(self.p, self.n)
    }

    /// The product with y + y_lo, rounded.
    #[inline(always)]
    pub fn times(self, y: f64, y_lo: f64) -> f64 {
        scale_down(fma(self.p, y, fma(self.p, y_lo, self.p_lo * y)), self.n)
    }
}

/// Cody and Waite: `x` less the nearest multiple of ln 2, and that multiple.
#[inline(always)]
pub(super) fn exp_reduce(x: f64) -> (f64, u64) {
    let shifted = fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma(-n, LN2_HI, x);
    (fma(-n, LN2_LO, r), shifted.to_bits())
}

/// e^r - 1 for |r| <= ln 2 / 2.
#[inline(always)]
pub(super) fn expm1_core(r: f64) -> f64 {
    fma(r * r, exp_quotient(r), r)
}

/// (e^r - 1 - r) / r² for |r| <= ln 2 / 2.
#[inline(always)]
fn exp_quotient(r: f64) -> f64 {
    poly_wide!(r; 0.500_000_000_000_000_1, 0.166_666_666_666_666_74, 0.041_666_666_666_623_13, 0.008_333_333_333_322_576,
        0.001_388_888_891_751_912_1, 0.000_198_412_698_856_699_5, 2.480_152_094_998_443e-5, 2.755_724_324_488_693e-6,
        2.762_021_902_665_257_5e-7, 2.510_974_083_759_873_5e-8)
}

/// `p` · 2^n, rounded once, for n in the low bits of `bits` and -1500 < n < 1500; `low` where n may be below -1022,
/// else n may be above 1023.
#[inline(always)]
fn scale(p: f64, bits: u64, low: bool) -> f64 {
    const UP: f64 = f64::from_bits((1023 + 512) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 512) << 52);
    let bias = if low { (1023 + 512) << 52 } else { (1023 - 512) << 52 };
    let rest = if low { DOWN } else { UP };
    p * f64::from_bits((bits << 52).wrapping_add(bias)) * rest
}

/// `p` · 2^n for n <= 511 in the low bits of `bits`, rounded once even where the result is subnormal.
#[inline(always)]
pub(super) fn scale_down(p: f64, bits: u64) -> f64 {
    scale(p, bits, true)
}

/// 2^n for -1022 <= n <= 1023 in the low bits of `bits`.
#[inline(always)]
pub(super) fn power_of_two(bits: u64) -> f64 {
    f64::from_bits((bits << 52).wrapping_add(1023 << 52))
}

/// e^x.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // As for `f32`: where the result is zero, nothing is to underflow on the way to it.
    let gone = x < -746.0;
    let (p, n) = exp_parts(clamp(if gone { 0.0 } else { x }, -746.0, 710.0));
    let y = scale(p, n, x < 0.0);
    if gone { 0.0 } else { y }
}

/// 2^x, exact for integers.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = clamp(x, -1076.0, 1025.0);
    let shifted = x + ROUND;
    let r = x - (shifted - ROUND);
    exp2_from_parts(r, shifted.to_bits(), x < 0.0)
}

/// 2^(r + n) for |r| <= 1/2 and n in the low bits of `bits`; `low` as in [`scale`].
#[inline(always)]
pub(super) fn exp2_from_parts(r: f64, bits: u64, low: bool) -> f64 {
    let q = poly_wide!(r; 2.286_601_317_894_831_7e-17, 0.240_226_506_959_100_97, 0.055_504_108_664_821_66,
        0.009_618_129_107_607_292, 0.001_333_355_814_639_607_6, 0.000_154_035_304_412_535_9, 1.525_273_385_321_420_8e-5,
        1.321_544_281_565_779e-6, 1.017_805_175_438_436_3e-7, 7.072_548_837_187_261e-9, 4.456_671_709_374_040_4e-10);
    let y = fma(r, std::f64::consts::LN_2, r * q);
    scale(1.0 + y, bits, low)
}

/// e^x - 1 without cancellation.
#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let y = expm1_signless(clamp(x, -38.0, 710.0));
    y.copysign(x)
}

/// e^x - 1 for -700 < x < 711, but for the sign of zero.
#[inline(always)]
pub(super) fn expm1_signless(x: f64) -> f64 {
    let (r, bits) = exp_reduce(x);
    // e^r - 1 as the sum of two.
    let bend = r * r * exp_quotient(r);
    let p = r + bend;
    let p_lo = bend - (p - r);
    // Half of 2^n, since n reaches 1024.
    let half = f64::from_bits((bits << 52).wrapping_add(1022 << 52));
    let shift = half - 0.5;
    let y = fma(p, half, shift);
    let y_lo = fma(p, half, shift - y) + p_lo * half;
    if half == 0.5 { p } else { 2.0 * (y + y_lo) }
}

/// 1 / (1 + e^-x), accurate in both tails.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let z = exp_neg_abs(x).value();
    // y / (1 + z) as y - y z / (1 + z), so that the roundings of the quotient count little.
    let y = if x < 0.0 { z } else { 1.0 };
    fma(-y, z / (1.0 + z), y)
}

/// x · sigmoid(x); -0 at negative infinity.
#[inline(always)]
pub fn silu(x: f64) -> f64 {
    // -inf · 0 would be NaN.
    gate(if x < -760.0 { -760.0 } else { x }, exp_neg_abs(x))
}

/// x / (1 + e) for negative x, where 1 / e = `inverse`, x / (1 + 1 / e) else: a gate that is 1 far out on the positive
/// side, e being the exponential of something even in x.
#[inline(always)]
pub(super) fn gate(x: f64, inverse: Wide) -> f64 {
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
    let positive = if x < f64::INFINITY { q } else { x };
    with_sign(if negative { scale_down(q, inverse.n) } else { positive }, x)
}

/// e^-|x| in parts.
#[inline(always)]
fn exp_neg_abs(x: f64) -> Wide {
    let a = -x.abs();
    exp_parts_wide(if a < -760.0 { -760.0 } else { a }, 0.0)
}

/// Derivative of [`silu`]: σ(x) (1 + x σ(-x)), accurate also around its zero.
#[inline(always)]
pub fn silu_derivative(x: f64) -> f64 {
    const ZERO: [f64; 2] = [1.278_464_542_761_073_7, 1.094_699_418_309_343_7e-16];
    let e = exp_neg_abs(x);
    let a = x.abs();
    let t = if a > 760.0 { 760.0 } else { a };
    // At -t it is z b / (1 + z)² for z = e^-t and b = 1 + z - t.
    let v = t - 1.25;
    let q = poly_wide!(v; -1.282_465_598_221_785_6, 0.141_902_811_238_137_25, -0.047_412_923_625_226_075,
        0.011_870_060_738_607_32, -0.002_376_259_163_369_668, 0.000_396_310_967_328_963_65, -5.664_456_510_683_824e-5,
        7.083_363_905_306_17e-6, -7.872_888_986_488_541e-7, 7.874_923_330_169_655e-8, -7.160_530_071_276_485e-9,
        5.968_108_096_199_729e-10, -4.592_417_281_918_878e-11, 3.284_706_825_641_878e-12,
        -2.202_688_062_565_134_1e-13, 1.306_012_750_299_671_3e-14);
    let near = t < 2.5;
    let (b, b_lo) = around_zero(t, ZERO, q);
    let far = (1.0 + e.value()) - t;
    gate_derivative(x, e, if near { b } else { far }, if near { b_lo } else { 0.0 })
}

/// (t - zero) q as the sum of two, the zero being one.
#[inline(always)]
pub(super) fn around_zero(t: f64, zero: [f64; 2], q: f64) -> (f64, f64) {
    let d = t - zero[0];
    let d_lo = ((t - d) - zero[0]) - zero[1];
    let b = d * q;
    (b, fma(d, q, -b) + d_lo * q)
}

/// The derivative of a [`gate`] from the factor b: z b / (1 + z)² for negative x, 1 less that else.
#[inline(always)]
pub(super) fn gate_derivative(x: f64, inverse: Wide, b: f64, b_lo: f64) -> f64 {
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
