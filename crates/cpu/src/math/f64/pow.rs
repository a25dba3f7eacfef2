//! x^y.

use super::{ROUND, SIGN, fma};
use crate::math::{estrin, poly_wide};

/// log2 of a positive finite `x` as the sum of two doubles, within 2^-65 of the value or so.
#[inline(always)]
fn log2_wide(x: f64) -> (f64, f64) {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    /// 2 / ln 2 and 1/3.
    const SCALE: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
    const THIRD: [f64; 2] = [1.0 / 3.0, 1.850_371_707_708_594e-17];
    let tiny = x < f64::MIN_POSITIVE;
    let y = if tiny { x * TWO_52 } else { x };
    let bias = if tiny { TWO_52 + 1023.0 + 52.0 } else { TWO_52 + 1023.0 };
    // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
    let biased = y.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd).wrapping_add(1023 << 52) >> 52;
    let m = f64::from_bits(y.to_bits().wrapping_sub((biased << 52).wrapping_sub(1023 << 52)));
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - bias;
    // s = (m - 1) / (m + 1), so that log(m) = 2 artanh(s).
    let f = m - 1.0;
    let d = m + 1.0;
    let d_lo = f - (d - 2.0);
    let r = 1.0 / d;
    let s = f * r;
    let s_lo = r * fma(-s, d_lo, fma(-s, d, f));
    let u = s * s;
    let u_lo = fma(2.0 * s, s_lo, fma(s, s, -u));
    // artanh(s) / s = 1 + u / 3 + u² q
    let q = poly_wide!(u; 0.2, 0.142_857_142_857_131_7, 0.111_111_111_113_800_1, 0.090_909_090_789_080_91,
        0.076_923_048_130_466_69, 0.066_670_780_671_925_96, 0.058_604_231_333_529_835, 0.057_957_608_332_791_115);
    let w = u * THIRD[0];
    let w_lo = fma(u * u, q, fma(u, THIRD[0], -w) + fma(u, THIRD[1], u_lo * THIRD[0]));
    let v = 1.0 + w;
    let v_lo = (w - (v - 1.0)) + w_lo;
    let b = SCALE[0] * s;
    let b_lo = fma(SCALE[0], s, -b) + fma(SCALE[0], s_lo, SCALE[1] * s);
    let l = b * v;
    let l_lo = fma(b, v, -l) + fma(b, v_lo, b_lo * v);
    let sum = e + l;
    (sum, (l - (sum - e)) + l_lo)
}

/// 2^(t + lo) for a small `lo`.
#[inline(always)]
fn exp2_wide(t: f64, lo: f64) -> f64 {
    let shifted = t + ROUND;
    let r = (t - (shifted - ROUND)) + lo;
    super::exp::exp2_from_parts(r, shifted.to_bits(), t < 0.0)
}

/// x^y with the special cases of IEEE 754: 1 for x = 1 or y = 0 whatever the other, NaN for negative `x` and
/// fractional `y`.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let a = x.abs();
    let (l, l_lo) = log2_wide(a);
    let ordinary = (a < f64::INFINITY) & (a > 0.0);
    let l = if ordinary { l } else { a };
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let t = y * l;
    let t_lo = fma(y, l_lo, fma(y, l, -t));
    let moderate = t.abs() < 1100.0;
    let t_lo = if ordinary & moderate { t_lo } else { 0.0 };
    let t = if t > 1100.0 { 1100.0 } else { t };
    let t = if t < -1100.0 { -1100.0 } else { t };
    let magnitude = exp2_wide(t, t_lo);
    let whole = y.trunc() == y;
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    let sign = if odd { x.to_bits() & SIGN } else { 0 };
    let signed = f64::from_bits(magnitude.to_bits() ^ sign);
    let r = if (x < 0.0) & (a < f64::INFINITY) & !whole { f64::NAN } else { signed };
    let one = (x == 1.0) | (y == 0.0) | ((a == 1.0) & (y.abs() == f64::INFINITY));
    if one { 1.0 } else { r }
}
