//! The error function, its complement and its inverse.

use super::exp::{Wide, exp_parts_wide};
use super::{fma, with_sign};
use crate::math::{estrin, poly_wide};

/// Error function: a polynomial in x² below 1, 1 - erfc from there on.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    let s = x * x;
    let q = poly_wide!(s; 0.128_379_167_095_512_6, -0.376_126_389_031_838_76, 0.112_837_916_709_587_83,
        -0.026_866_170_645_631_93, 0.005_223_977_629_246_368, -0.000_854_832_719_941_939_8, 0.000_120_553_381_642_472_18,
        -1.492_574_826_097_016_8e-5, 1.646_324_876_647_780_6e-6, -1.637_238_879_108_260_7e-7,
        1.479_847_878_252_358_3e-8, -1.187_705_033_681_897_1e-9, 6.763_672_905_290_383e-11);
    let near = fma(a, q, a);
    // erfc(6) is below half a unit in the last place of 1.
    let far = 1.0 - erfc_tail(if a > 6.0 { 6.0 } else { a });
    with_sign(if a < 1.0 { near } else { far }, x)
}

/// 1 - erf(x), accurate in the upper tail.
#[inline(always)]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    let tail = erfc_tail(if a > 27.3 { 27.3 } else { a });
    if x < 0.0 { 2.0 - tail } else { tail }
}

/// erfc(a) for 0 <= a <= 27.3: e^(-a²) times a polynomial in 3 / (3 + a).
#[inline(always)]
fn erfc_tail(a: f64) -> f64 {
    let (z, epsilon) = shifted_reciprocal::<3>(a);
    let v = fma(z, epsilon, z - 0.5);
    let q = poly_wide!(v; 0.358_002_302_362_779_9, 0.588_929_635_446_588_2, 0.786_971_142_805_458_1,
        0.827_912_698_401_890_2, 0.637_481_393_534_530_8, 0.286_157_169_282_377_83, -0.025_864_888_236_919_664,
        -0.129_453_309_522_968_93, -0.046_789_085_943_558_795, 0.047_236_674_029_060_91, 0.036_714_143_150_664_99,
        -0.020_750_325_952_655_226, -0.023_850_743_160_499_642, 0.012_950_505_187_876_627, 0.015_083_545_862_387_08,
        -0.010_768_499_792_364_914, -0.008_829_193_097_613_092, 0.009_488_841_335_882_17, 0.003_899_267_648_032_940_3,
        -0.006_675_751_965_859_132, -0.000_681_582_511_639_528_6, 0.002_339_585_936_333_335_4);
    let zq = z * q;
    exp_neg_product(a, a, epsilon).times(zq, fma(z, q, -zq))
}

/// C / (C + a) for a >= 0, as z (1 + ε) with a rounded quotient z; ε corrects it.
#[inline(always)]
pub(super) fn shifted_reciprocal<const C: u32>(a: f64) -> (f64, f64) {
    let c = C as f64;
    let sum = a + c;
    let lost = a - (sum - c);
    let z = c / sum;
    (z, fma(-lost, z, fma(-sum, z, c)) * (1.0 / c))
}

/// e^(-a b + ε) with the product taken exactly.
#[inline(always)]
pub(super) fn exp_neg_product(a: f64, b: f64, epsilon: f64) -> Wide {
    let product = a * b;
    exp_parts_wide(-product, epsilon - fma(a, b, -product))
}

/// Inverse of [`erf`]: infinite at -1 and 1, NaN outside.
#[inline(always)]
pub fn erfinv(x: f64) -> f64 {
    erfinv_steps(x, 2)
}

/// Winitzki's closed form (2008; good to 2e-3), then so many of Halley's steps, each of which triples the digits.
#[inline(always)]
pub(in crate::math) fn erfinv_steps(x: f64, steps: usize) -> f64 {
    const A: f64 = 0.147;
    let a = x.abs();
    // 1 - a is exact from a half on.
    let rest = 1.0 - a;
    let l = if a < 0.5 { super::log1p(-a * a) } else { super::log(rest * (1.0 + a)) };
    let c = 2.0 / (std::f64::consts::PI * A) + 0.5 * l;
    let mut y = (-l / A / ((c * c - l / A).sqrt() + c)).sqrt();
    for _ in 0..steps {
        let error = if a < 0.5 { erf(y) - a } else { rest - erfc(y) };
        let u = error / (std::f64::consts::FRAC_2_SQRT_PI * super::exp(-y * y));
        y -= u / (1.0 + y * u);
    }
    let y = if a == 1.0 { f64::INFINITY } else { y };
    let y = if a == 0.0 { 0.0 } else { y };
    y.copysign(x)
}
