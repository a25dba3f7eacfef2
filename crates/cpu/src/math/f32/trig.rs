//! sin, cos and tan.
//!
//! The vector functions reduce arguments up to [`TRIG_LIMIT`]; the rare larger ones are computed again one by one, see
//! [`map_rare`](crate::math::map_rare).

use super::{ROUND, SIGN, fma};
use crate::math::{f64 as double, poly};

/// Largest magnitude that [`sin`], [`cos`] and [`tan`] reduce themselves.
pub const TRIG_LIMIT: f32 = 32768.0;

/// Whether an argument needs [`sin_rare`], [`cos_rare`], [`tan_rare`].
#[inline(always)]
pub fn trig_is_rare(x: f32) -> bool {
    let a = x.abs();
    (a > TRIG_LIMIT) & (a < f32::INFINITY)
}

/// What π/2 as a float lacks, as the sum of two.
const PI_2_REST: [f32; 2] = [-4.371_139e-8, -1.715_124_5e-15];

/// |x| less the nearest multiple of π/2 (within ±π/4 and a little) as the sum of two floats, and that multiple in the
/// low bits.
#[inline(always)]
fn reduce(x: f32) -> (f32, f32, u32) {
    let a = x.abs();
    let shifted = fma(a, std::f32::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    // This step is exact.
    let whole = fma(-n, std::f32::consts::FRAC_PI_2, a);
    let p = n * PI_2_REST[0];
    let p_lo = fma(n, PI_2_REST[1], fma(n, PI_2_REST[0], -p));
    // The sum may cancel: Knuth's two-sum takes any order of magnitude.
    let r = whole - p;
    let q = r - whole;
    let r_lo = ((whole - (r - q)) - (p + q)) - p_lo;
    (r, r_lo, shifted.to_bits())
}

#[inline(always)]
fn sin_core(r: f32, r_lo: f32) -> f32 {
    let s = r * r;
    let q = poly!(s; -0.166_666_64, 0.008_332_715, -0.000_195_833_85);
    r + fma(r * s, q, r_lo)
}

#[inline(always)]
fn cos_core(r: f32, r_lo: f32) -> f32 {
    let s = r * r;
    let q = poly!(s; 0.041_666_664, -0.001_388_827_1, 2.454_359_7e-5);
    let tail = fma(s * s, q, -(r * r_lo));
    fma(s, -0.5, 1.0) + tail
}

/// Sine, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (r, r_lo, n) = reduce(x);
    let y = if n & 1 == 0 { sin_core(r, r_lo) } else { cos_core(r, r_lo) };
    f32::from_bits(y.to_bits() ^ (n << 30 & SIGN) ^ (x.to_bits() & SIGN))
}

/// Cosine, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (r, r_lo, n) = reduce(x);
    let y = if n & 1 == 0 { cos_core(r, r_lo) } else { sin_core(r, r_lo) };
    f32::from_bits(y.to_bits() ^ (n.wrapping_add(1) << 30 & SIGN))
}

/// Tangent, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (r, r_lo, n) = reduce(x);
    let s = r * r;
    let q = poly!(s; 0.333_333_34, 0.133_332_04, 0.053_999_037, 0.021_590_425, 0.010_057_551, 0.001_047_206_7,
        0.003_918_542_5);
    // The derivative of tan is 1 + tan², here about 1 + r².
    let bend = fma(r * s, q, fma(r_lo, s, r_lo));
    let t = r + bend;
    let t_lo = bend - (t - r);
    let w = 1.0 / t;
    let w = fma(fma(-t, w, 1.0) - t_lo * w, w, w);
    let y = if n & 1 == 0 { t } else { -w };
    f32::from_bits(y.to_bits() ^ (x.to_bits() & SIGN))
}

/// Sine of any argument, one at a time.
#[cold]
pub fn sin_rare(x: f32) -> f32 {
    double::sin_rare(x as f64) as f32
}

/// Cosine of any argument, one at a time.
#[cold]
pub fn cos_rare(x: f32) -> f32 {
    double::cos_rare(x as f64) as f32
}

/// Tangent of any argument, one at a time.
#[cold]
pub fn tan_rare(x: f32) -> f32 {
    double::tan_rare(x as f64) as f32
}
