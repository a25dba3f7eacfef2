//! The Gaussian error linear unit in both its forms, and its derivatives.
//!
//! All four are accurate relative to their value, also far out on the negative side where 1 + erf or 1 + tanh cancels.

use super::erf::{exp_neg_product, shifted_reciprocal};
use super::exp::{exp_parts, scale_down};
use super::fma;
use crate::math::poly;

/// From here on the normal distribution's tail, and its product with x, is below half of the least subnormal.
const TAIL_END: f32 = 14.6;

/// x · Φ(x), Φ the distribution function of the standard normal; -0 at negative infinity.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let z = shifted_reciprocal::<3>(t);
    let v = z - 0.5;
    // Φ(-t) e^(t²/2) = z q
    let q = poly!(v; 0.243_027_9, 0.339_554_8, 0.306_690_42, 0.126_021_28, -0.055_803_392, -0.073_989_28, 0.021_731_054,
        0.040_316_634, -0.017_485_894, -0.008_655_292);
    let (p, n) = exp_neg_product(0.5 * t, t);
    let tail = scale_down(p * (z * q) * t, n);
    if x < 0.0 { -tail } else { x - tail }
}

/// Derivative of [`gelu`]: Φ(x) + x φ(x).
#[inline(always)]
pub fn gelu_derivative(x: f32) -> f32 {
    // The zero on the negative side, as the sum of two floats.
    const ZERO_HI: f32 = 0.751_791_54;
    const ZERO_LO: f32 = -1.211_445e-8;
    let a = x.abs();
    let t = if a > TAIL_END { TAIL_END } else { a };
    let v = shifted_reciprocal::<3>(t) - 0.5;
    // (Φ(-t) - t φ(t)) e^(t²/2) = (t - zero) q
    let q = poly!(v; -0.478_297_68, -0.239_950_88, -0.214_384_26, -0.112_595_65, -0.003_267_532_7, 0.034_969_624,
        0.006_036_005, -0.015_826_37, -0.001_512_390_9, 0.006_301_108_3);
    let (p, n) = exp_neg_product(0.5 * t, t);
    let tail = scale_down(p * (((t - ZERO_HI) - ZERO_LO) * q), n);
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// sqrt(2/π) and its product with 0.044715, doubled, each as the sum of two floats.
const K1: [f32; 2] = [2.0 * 0.797_884_6, 2.0 * -2.267_034e-8];
const K3: [f32; 2] = [2.0 * 0.035_677_407, 2.0 * 1.199_416_2e-9];
/// From here on the tanh form's tail is below half of the least subnormal.
const TANH_TAIL_END: f32 = 11.0;

/// e^(-2u) in the parts of [`exp_parts`], for u = sqrt(2/π) (a + 0.044715 a³) in the arithmetic of two floats.
#[inline(always)]
fn exp_neg_cubic(a: f32) -> (f32, u32) {
    let s = a * a;
    let s_lo = fma(a, a, -s);
    let c = K3[0] * s;
    let c_lo = fma(K3[0], s, -c) + fma(K3[0], s_lo, K3[1] * s);
    let sum = K1[0] + c;
    let back = sum - c;
    let sum_lo = (K1[0] - back) + (c - (sum - back)) + (K1[1] + c_lo);
    let y = a * sum;
    exp_parts(-y, -fma(a, sum_lo, fma(a, sum, -y)))
}

/// x (1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2; -0 at negative infinity.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    let (p, n) = exp_neg_cubic(t);
    let z = scale_down(p, n);
    let tail = scale_down(p * t / (1.0 + z), n);
    if x < 0.0 { -tail } else { x / (1.0 + z) }
}

/// Derivative of [`gelu_tanh`].
#[inline(always)]
pub fn gelu_tanh_derivative(x: f32) -> f32 {
    let a = x.abs();
    let t = if a > TANH_TAIL_END { TANH_TAIL_END } else { a };
    let (p, n) = exp_neg_cubic(t);
    let z = scale_down(p, n);
    let s = 1.0 / (1.0 + z);
    // σ(-2u) (1 - 2 t u' σ(2u))
    let slope = t * fma(3.0 * K3[0], t * t, K1[0]);
    let tail = scale_down(p * s * fma(-slope, s, 1.0), n);
    if x < 0.0 { tail } else { 1.0 - tail }
}
