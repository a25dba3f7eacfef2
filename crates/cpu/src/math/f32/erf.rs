//! The error function, its complement and its inverse.

use super::exp::{Wide, exp_parts, exp_parts_wide, power_of_two};
use super::log::log;
use super::{fma, with_sign};
use crate::math::poly;

/// Error function.
///
/// Near 0 a polynomial in x²; from 1 on 1 - erfc, where log(erfc) is the polynomial.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let near = fma(a, poly!(s; 0.128_379_12, -0.376_123_43, 0.112_803_43, -0.026_716_176, 0.004_923_281_7, -0.000_565_472_8), a);
    // erfc(4) is below half a unit in the last place of 1.
    let b = if a > 4.0 { 4.0 } else { a };
    let q = poly!(b; 1.128_845_3, 0.634_354_6, 0.107_552_335, -0.024_902_765, 0.004_197_448_5, -0.000_471_260_95,
        3.055_729_8e-5, -8.250_568e-7);
    let (p, n) = exp_parts(-(b * q));
    let far = fma(-p, power_of_two(n), 1.0);
    with_sign(if a < 1.0 { near } else { far }, x)
}

/// 1 - erf(x), accurate in the upper tail: e^(-x²) times a polynomial in 3 / (3 + x).
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.2 { 10.2 } else { a };
    let (z, epsilon) = shifted_reciprocal::<3>(a);
    let v = fma(z, epsilon, z - 0.5);
    let q = poly!(v; 0.358_002_3, 0.588_929_65, 0.786_970_7, 0.827_910_3, 0.637_504_94, 0.286_241_68, -0.026_408_22,
        -0.130_490_15, -0.040_475_927, 0.049_744_274, 0.005_465_541_5);
    let zq = z * q;
    let tail = exp_neg_product(a, a, epsilon).times(zq, fma(z, q, -zq));
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// Inverse error function; ±inf at ±1, NaN beyond.
///
/// After M. Giles, "Approximating the erfinv function": erfinv(x) / x is smooth in w = -log(1 - x²) near 0 and in sqrt(w)
/// in the tail; the polynomials are our own.
#[inline(always)]
pub fn erfinv(x: f32) -> f32 {
    let w = -log(fma(-x, x, 1.0));
    // sqrt(π) / 2 is the sum of C and C_LO.
    const C: f32 = 0.886_226_95;
    const C_LO: f32 = -2.662_32e-8;
    let q = poly!(w; 0.232_013_5, 0.011_550_748, -0.002_339_631, -0.000_120_543_475, 3.936_988e-5, 6.354_405_7e-6,
        -2.646_616_8e-6, 3.355_093_8e-7, -1.961_77e-8, 4.351_147_2e-10);
    let near = fma(x, C, x * fma(w, q, C_LO));
    let v = w.sqrt() - 3.1;
    let far = poly!(v; 2.933_231_6, 1.003_356_1, 0.007_461_360_7, -0.005_695_4, 0.004_108_127_7, -0.002_721_142_5,
        0.001_366_548_7, -0.000_287_046_6, -0.000_204_613_7, 0.000_130_473_83);
    let y = if w < 5.0 { near } else { x * far };
    // The correction may turn the sign of 0.
    let y = y.copysign(x);
    if x.abs() == 1.0 { f32::INFINITY.copysign(x) } else { y }
}

/// C / (C + a) for a >= 0, as z (1 + ε) with a rounded quotient z; ε corrects it.
#[inline(always)]
pub(super) fn shifted_reciprocal<const C: u32>(a: f32) -> (f32, f32) {
    let c = C as f32;
    let sum = a + c;
    let lost = a - (sum - c);
    let z = c / sum;
    (z, fma(-lost, z, fma(-sum, z, c)) * (1.0 / c))
}

/// e^(-a b + ε) with the product taken exactly.
#[inline(always)]
pub(super) fn exp_neg_product(a: f32, b: f32, epsilon: f32) -> Wide {
    let product = a * b;
    exp_parts_wide(-product, epsilon - fma(a, b, -product))
}
