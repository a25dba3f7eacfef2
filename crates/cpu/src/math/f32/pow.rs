//! x^y.

use super::SIGN;
use crate::math::f64::fma;
use crate::math::{estrin, poly_wide};

/// log2 of a positive finite `x` that an `f32` can hold, within 2^-42 or so.
#[inline(always)]
fn log2_double(x: f64) -> f64 {
    // x = m 2^e with m in [2/3, 4/3); e is biased so that it stays non-negative.
    let biased = x.to_bits().wrapping_sub(0x3fe5_5555_5555_5555).wrapping_add(1023 << 52) >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub((biased << 52).wrapping_sub(1023 << 52)));
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    let f = m - 1.0;
    fma(
        f,
        poly_wide!(f; 1.442_695_040_888_771_3, -0.721_347_520_470_468_9, 0.480_898_347_156_944_1, -0.360_673_751_562_287_26,
        0.288_538_975_607_318_4, -0.240_450_006_080_526_97, 0.206_101_394_710_426_02, -0.180_301_735_232_439_67,
        0.160_232_410_534_626_86, -0.145_025_401_794_968_9, 0.132_314_391_469_694_7, -0.111_646_064_048_546_7,
        0.099_958_528_615_620_16, -0.150_801_445_770_678_64, 0.148_722_762_837_190_33),
        e,
    )
}

/// 2^t for |t| <= 1000.
#[inline(always)]
fn exp2_double(t: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = t + ROUND;
    let r = t - (shifted - ROUND);
    let p = poly_wide!(r; 1.000_000_000_000_027, 0.693_147_180_545_928_5, 0.240_226_506_954_669_54, 0.055_504_109_412_235_61,
        0.009_618_129_228_582_399, 0.001_333_345_055_247_161_1, 0.000_154_034_115_843_274_67, 1.531_008_327_878_533e-5,
        1.326_407_777_425_311_1e-6);
    p * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// x^y with the special cases of IEEE 754: 1 for x = 1 or y = 0 whatever the other, NaN for negative `x` and
/// fractional `y`. Exact wherever the result is an `f32`.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let l = log2_double(a as f64);
    let l = if a < f32::INFINITY { l } else { a as f64 };
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let t = y as f64 * l;
    let t = if t > 200.0 { 200.0 } else { t };
    let t = if t < -200.0 { -200.0 } else { t };
    let magnitude = exp2_double(t) as f32;
    let whole = y.trunc() == y;
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    let sign = if odd { x.to_bits() & SIGN } else { 0 };
    let signed = f32::from_bits(magnitude.to_bits() ^ sign);
    let r = if (x < 0.0) & (a < f32::INFINITY) & !whole { f32::NAN } else { signed };
    let one = (x == 1.0) | (y == 0.0) | ((a == 1.0) & (y.abs() == f32::INFINITY));
    if one { 1.0 } else { r }
}
