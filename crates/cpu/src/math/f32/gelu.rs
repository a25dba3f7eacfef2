//! The Gaussian error linear unit in both its forms, and its derivatives.
//!
//! All four are accurate relative to their value, also far out on the negative side where 1 + erf or 1 + tanh cancels.

use super::erf::{exp_neg_product, shifted_reciprocal};
use super::exp::{Wide, around_zero, exp_parts_wide, exp_reduce, expm1_core, gate, gate_derivative, scale_down};
use super::fma;
use crate::math::poly;

/// From here on the normal distribution's tail, and its product with x, is below half of the least subnormal.
const TAIL_END: f32 = 14.6;

/// x · Φ(x), Φ the distribution function of the standard normal; -0 at negative infinity.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let (z, epsilon) = shifted_reciprocal::<3>(t);
    let v = fma(z, epsilon, z - 0.5);
    // Φ(-t) e^(t²/2) = z q
    let q = poly!(v; 0.243_027_9, 0.339_554_67, 0.306_690_42, 0.126_033_16, -0.055_805_43, -0.074_317_05, 0.021_918_166,
        0.043_771_546, -0.020_943_41, -0.021_183_504, 0.017_423_414);
    // e^(-t²/2), in whose exponent stand the rounding error of the square and the correction of z.
    let half = 0.5 * t;
    let s = half * t;
    let (r, n) = exp_reduce(-s);
    let r = r + (epsilon - fma(half, t, -s));
    let y = t * (z * q);
    let tail = scale_down(fma(y, expm1_core(r), y), n);
    if x < 0.0 { -tail } else { x - tail }
}

/// [`gelu`] for results that are rounded to 11 bits or fewer: within 2^-15 of its tail.
#[inline(always)]
pub fn gelu_short(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let z = 3.0 / (t + 3.0);
    let q = poly!(z - 0.5; 0.243_030_16, 0.339_615_67, 0.306_487_02, 0.123_621_54, -0.052_267_816, -0.052_950_267);
    let (r, n) = exp_reduce(-(0.5 * t * t));
    let p = poly!(r; 1.0, 1.0, 0.5, 0.166_666_67, 0.041_666_668);
    let tail = scale_down(t * z * q * p, n);
    if x < 0.0 { -tail } else { x - tail }
}

/// Derivative of [`gelu`]: Φ(x) + x φ(x).
#[inline(always)]
pub fn gelu_derivative(x: f32) -> f32 {
    const ZERO: [f32; 2] = [0.751_791_54, -1.211_445e-8];
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let (z, epsilon) = shifted_reciprocal::<3>(t);
    let v = fma(z, epsilon, z - 0.5);
    // (Φ(-t) - t φ(t)) e^(t²/2) = (t - zero) q
    let q = poly!(v; -0.478_297_68, -0.239_950_88, -0.214_384_26, -0.112_595_65, -0.003_267_532_7, 0.034_969_624,
        0.006_036_005, -0.015_826_37, -0.001_512_390_9, 0.006_301_108_3);
    let (dq, dq_lo) = around_zero(t, ZERO, q);
    let tail = exp_neg_product(0.5 * t, t, 0.0).times(dq, dq_lo);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// sqrt(2/π) and its product with 0.044715, doubled, each as the sum of two floats.
const K1: [f32; 2] = [2.0 * 0.797_884_6, 2.0 * -2.267_034e-8];
const K3: [f32; 2] = [2.0 * 0.035_677_407, 2.0 * 1.199_416_2e-9];
/// From here on the tanh form's tail is below half of the least subnormal.
const TANH_TAIL_END: f32 = 11.0;

/// e^(-2u) for u = sqrt(2/π) (a + 0.044715 a³) in the arithmetic of two floats.
#[inline(always)]
fn exp_neg_cubic(a: f32) -> Wide {
    let s = a * a;
    let s_lo = fma(a, a, -s);
    let c = K3[0] * s;
    let c_lo = fma(K3[0], s, -c) + fma(K3[0], s_lo, K3[1] * s);
    let sum = K1[0] + c;
    let back = sum - c;
    let sum_lo = (K1[0] - back) + (c - (sum - back)) + (K1[1] + c_lo);
    let y = a * sum;
    exp_parts_wide(-y, -fma(a, sum_lo, fma(a, sum, -y)))
}

/// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2; -0 at negative infinity.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    gate(if x < -TANH_TAIL_END { -TANH_TAIL_END } else { x }, exp_neg_cubic(t))
}

/// Derivative of [`gelu_tanh`].
#[inline(always)]
pub fn gelu_tanh_derivative(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    // At -t it is z b / (1 + z)² for z = e^(-2u) and b = 1 + z - 2 t u'.
    const ZERO: [f32; 2] = [0.752_461_43, -1.133_962_8e-8];
    let e = exp_neg_cubic(t);
    let v = t - 0.9;
    let q = poly!(v; -2.483_884, -0.213_480_44, -0.370_470_2, 0.060_206_097, -0.023_246_28, 0.008_502_428,
        -0.002_666_052, 0.000_790_200_7, -0.000_281_857_88, 8.295_588e-5);
    let near = t < 1.8;
    let (b, b_lo) = around_zero(t, ZERO, q);
    let slope = fma(3.0 * K3[0], t * t, K1[0]);
    let far = fma(-t, slope, 1.0 + e.value());
    gate_derivative(x, e, if near { b } else { far }, if near { b_lo } else { 0.0 })
}
