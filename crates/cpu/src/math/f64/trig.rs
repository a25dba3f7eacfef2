//! sin, cos and tan.
//!
//! The vector functions reduce arguments up to [`TRIG_LIMIT`]; the rare larger ones are computed again one by one, see
//! [`map_rare`](crate::math::map_rare).

use super::{ROUND, SIGN, fma};
use crate::math::poly;

/// Largest magnitude that [`sin`], [`cos`] and [`tan`] reduce themselves.
pub const TRIG_LIMIT: f64 = 1_073_741_824.0;

/// Whether an argument needs [`sin_rare`], [`cos_rare`], [`tan_rare`].
#[inline(always)]
pub fn trig_is_rare(x: f64) -> bool {
    let a = x.abs();
    (a > TRIG_LIMIT) & (a < f64::INFINITY)
}

/// An angle within ±π/4 and a little, as the sum of two doubles, and the number of quarter turns taken off.
#[derive(Clone, Copy)]
struct Reduced {
    hi: f64,
    lo: f64,
    quarters: u64,
}

/// π/2 as the sum of three doubles.
const PI_2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// |x| less the nearest multiple of π/2, after Cody and Waite.
#[inline(always)]
fn reduce(x: f64) -> Reduced {
    let a = x.abs();
    let shifted = fma(a, std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    // The first step is exact.
    let r = fma(-n, PI_2[0], a);
    let p = n * PI_2[1];
    let p_lo = fma(n, PI_2[2], fma(n, PI_2[1], -p));
    // The sum may cancel: Knuth's two-sum takes any order of magnitude.
    let hi = r - p;
    let q = hi - r;
    let lo = ((r - (hi - q)) - (p + q)) - p_lo;
    Reduced { hi, lo, quarters: shifted.to_bits() }
}

#[inline(always)]
fn sin_core(r: Reduced) -> f64 {
    let s = r.hi * r.hi;
    let q = poly!(s; -0.166_666_666_666_666_66, 0.008_333_333_333_331_291, -0.000_198_412_698_370_516_36,
        2.755_731_620_427_430_7e-6, -2.505_114_721_402_222e-8, 1.591_896_895_931_748_5e-10);
    let correction = fma(r.lo, fma(-0.5, s, 1.0), r.hi * s * q);
    r.hi + correction
}

#[inline(always)]
fn cos_core(r: Reduced) -> f64 {
    let s = r.hi * r.hi;
    let q = poly!(s; 0.041_666_666_666_666_664, -0.001_388_888_888_888_705, 2.480_158_729_844_073_7e-5,
        -2.755_731_714_747_148_4e-7, 2.087_612_549_688_133_4e-9, -1.138_137_083_359_352_4e-11);
    let half = 0.5 * s;
    let w = 1.0 - half;
    let lost = (1.0 - w) - half;
    w + fma(s * s, q, fma(-r.hi, r.lo, lost))
}

#[inline(always)]
fn sin_of(r: Reduced, sign: u64) -> f64 {
    let y = if r.quarters & 1 == 0 { sin_core(r) } else { cos_core(r) };
    f64::from_bits(y.to_bits() ^ (r.quarters << 62 & SIGN) ^ sign)
}

#[inline(always)]
fn cos_of(r: Reduced) -> f64 {
    let y = if r.quarters & 1 == 0 { cos_core(r) } else { sin_core(r) };
    f64::from_bits(y.to_bits() ^ (r.quarters.wrapping_add(1) << 62 & SIGN))
}

#[inline(always)]
fn tan_of(r: Reduced, sign: u64) -> f64 {
    let (s, c) = (sin_core(r), cos_core(r));
    let odd = r.quarters & 1 != 0;
    let y = (if odd { -c } else { s }) / (if odd { s } else { c });
    f64::from_bits(y.to_bits() ^ sign)
}

/// Sine, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn sin(x: f64) -> f64 {
    sin_of(reduce(x), x.to_bits() & SIGN)
}

/// Cosine, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn cos(x: f64) -> f64 {
    cos_of(reduce(x))
}

/// Tangent, for |x| up to [`TRIG_LIMIT`], infinities and NaN.
#[inline(always)]
pub fn tan(x: f64) -> f64 {
    tan_of(reduce(x), x.to_bits() & SIGN)
}

/// Sine of any argument, one at a time.
#[cold]
pub fn sin_rare(x: f64) -> f64 {
    sin_of(reduce_any(x), x.to_bits() & SIGN)
}

/// Cosine of any argument, one at a time.
#[cold]
pub fn cos_rare(x: f64) -> f64 {
    cos_of(reduce_any(x))
}

/// Tangent of any argument, one at a time.
#[cold]
pub fn tan_rare(x: f64) -> f64 {
    tan_of(reduce_any(x), x.to_bits() & SIGN)
}

fn reduce_any(x: f64) -> Reduced {
    if trig_is_rare(x) { reduce_huge(x.abs()) } else { reduce(x) }
}

/// 64 zeros and the first 1280 bits of 2/π after the binary point.
const TWO_OVER_PI: [u64; 21] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// Payne and Hanek: a · 2/π modulo 4 from the bits of 2/π that matter, for finite a >= 2^30.
fn reduce_huge(a: f64) -> Reduced {
    let mantissa = (a.to_bits() & ((1 << 52) - 1)) | (1 << 52);
    let exponent = (a.to_bits() >> 52) as i32 - 1075;
    // a = mantissa · 2^exponent: the bits of 2/π above weight 2^(1 - exponent) give multiples of 4.
    let first = (exponent + 62) as usize;
    let window = |word: usize| {
        let (index, shift) = (first / 64 + word, first % 64);
        let high = TWO_OVER_PI[index] << shift;
        if shift == 0 { high } else { high | TWO_OVER_PI[index + 1] >> (64 - shift) }
    };
    // mantissa · window modulo 2^192, the most significant word first.
    let product = |word: u64| mantissa as u128 * word as u128;
    let low = product(window(2));
    let middle = product(window(1)) + (low >> 64);
    let high = (product(window(0)) as u64).wrapping_add((middle >> 64) as u64);
    // In units of 2^-126 quarters, modulo 4 quarters.
    let turned = (high as u128) << 64 | (middle as u64) as u128;
    let quarters = (turned >> 126) as u64;
    // The signed distance to the nearest quarter, in the same units.
    let signed = ((turned << 2) as i128) >> 2;
    let quarters = quarters + u64::from(signed < 0);
    let magnitude = signed.unsigned_abs();
    let zeros = magnitude.leading_zeros();
    let normal = magnitude.checked_shl(zeros).unwrap_or(0);
    // Two doubles of 53 and 53 bits.
    let hi = (normal >> 75) as f64;
    let lo = ((normal >> 22) & ((1 << 53) - 1)) as f64 * 2.0_f64.powi(-53);
    let unit = 2.0_f64.powi(75 - zeros as i32 - 126) * if signed < 0 { -1.0 } else { 1.0 };
    let (hi, lo) = (hi * unit, lo * unit);
    let y = hi * PI_2[0];
    let rest = fma(hi, PI_2[0], -y) + fma(hi, PI_2[1], lo * PI_2[0]);
    let sum = y + rest;
    Reduced { hi: sum, lo: rest - (sum - y), quarters }
}
