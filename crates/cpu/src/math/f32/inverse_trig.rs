//! asin, acos, atan and atan2.

use super::{SIGN, fma, with_sign};
use crate::math::poly;

const PI_HI: f32 = std::f32::consts::PI;
const PI_LO: f32 = 2.0 * PI_2_LO;
const PI_2_HI: f32 = std::f32::consts::FRAC_PI_2;
const PI_2_LO: f32 = -4.371_139e-8;

/// asin(z) - z for z = sqrt(s) <= 1/2.
#[inline(always)]
fn asin_excess(z: f32, s: f32) -> f32 {
    z * s * poly!(s; 0.166_666_73, 0.074_987_62, 0.045_020_174, 0.026_433_537, 0.038_328_044)
}

/// Inverse sine; NaN outside [-1, 1].
#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let a = x.abs();
    let near = a < 0.5;
    // Above 1/2: π/2 - 2 asin(sqrt((1 - a) / 2)).
    let s = if near { a * a } else { fma(-0.5, a, 0.5) };
    let z = if near { a } else { s.sqrt() };
    let e = asin_excess(z, s);
    let far = PI_2_HI - 2.0 * (z + (e - 0.5 * PI_2_LO));
    (if near { z + e } else { far }).copysign(x)
}

/// Inverse cosine; NaN outside [-1, 1].
#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let a = x.abs();
    let near = a < 0.5;
    let s = if near { a * a } else { fma(-0.5, a, 0.5) };
    let z = if near { a } else { s.sqrt() };
    let e = asin_excess(z, s);
    let middle = PI_2_HI - (x + (with_sign(e, x) - PI_2_LO));
    let far = if x < 0.0 { PI_HI - (2.0 * z + (2.0 * e - PI_LO)) } else { 2.0 * (z + e) };
    if near { middle } else { far }
}

/// atan(t) for 0 <= t <= 1, or π/2 less it, as 0 or π/2 and the rest.
#[inline(always)]
fn atan_core(t: f32, complement: bool) -> (f32, f32) {
    let s = t * t;
    let q = poly!(s; -0.333_333_3, 0.199_997_51, -0.142_790_7, 0.110_385_83, -0.086_774_774, 0.062_962_61, -0.036_433_03,
        0.013_860_541, -0.002_476_516);
    let e = t * s * q;
    if complement { (PI_2_HI, (PI_2_LO - e) - t) } else { (0.0, t + e) }
}

/// Inverse tangent.
#[inline(always)]
pub fn atan(x: f32) -> f32 {
    let a = x.abs();
    let big = a > 1.0;
    let (high, rest) = atan_core(if big { 1.0 / a } else { a }, big);
    with_sign(high + rest, x)
}

/// The angle of the point (x, y), in [-π, π]; signs of zero and infinities as in IEEE 754.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let steep = ay > ax;
    let (low, high) = if steep { (ax, ay) } else { (ay, ax) };
    let t = low / high;
    let t = if high == 0.0 { 0.0 } else { t };
    let t = if low == f32::INFINITY { 1.0 } else { t };
    let (high, rest) = atan_core(t, steep);
    let left = x.to_bits() & SIGN != 0;
    let high = if left { PI_HI - high } else { high };
    let rest = if left { PI_LO - rest } else { rest };
    let r = high + rest;
    // A comparison with NaN picks a side: let NaN through.
    let r = if x.is_nan() | y.is_nan() { f32::NAN } else { r };
    r.copysign(y)
}
