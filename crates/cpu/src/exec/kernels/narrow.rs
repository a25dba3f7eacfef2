//! Narrow floats: widening to `f32` and rounding from it, branch-free.

/// A float format narrower than `f32`.
pub trait Narrow {
    /// Its bits.
    type Bits: Copy;
    /// The value, exactly.
    fn widen(bits: Self::Bits) -> f32;
    /// The nearest value, ties to even, as the format overflows.
    fn narrow(x: f32) -> Self::Bits;
}

/// `float16`.
pub struct Half;
/// `bfloat16`.
pub struct Brain;
/// `float8_e4m3fn`.
pub struct E4M3;
/// `float8_e5m2`.
pub struct E5M2;

const SIGN: u32 = 0x8000_0000;

/// Widens sign, exponent and mantissa bits that stand at the top of the lower `15 - 10 + M` bits; no infinities and NaNs.
#[inline(always)]
fn widen_finite<const M: u32, const BIAS: u32>(magnitude: u32) -> f32 {
    // The exponent's bias is mended by a product, which also makes subnormal numbers normal.
    f32::from_bits(magnitude << (23 - M)) * f32::from_bits((254 - BIAS) << 23)
}

/// Rounds a magnitude to `M` mantissa bits; values past the largest give numbers above its bits.
#[inline(always)]
fn round_magnitude<const M: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let odd = (magnitude >> (23 - M)) & 1;
    let normal = magnitude.wrapping_sub((127 - BIAS) << 23).wrapping_add((1 << (22 - M)) - 1 + odd) >> (23 - M);
    // Adding a power of two whose last mantissa bit is the format's least subnormal rounds to it.
    let anchor = (127 - BIAS + 23 - M + 1) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(anchor)).to_bits().wrapping_sub(anchor);
    if magnitude < (128 - BIAS) << 23 { subnormal } else { normal }
}

impl Narrow for Half {
    type Bits = u16;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        let magnitude = bits as u32 & 0x7fff;
        let finite = widen_finite::<10, 15>(magnitude).to_bits();
        let special = magnitude << 13 | 0x7f80_0000;
        let magnitude = if magnitude >= 0x7c00 { special } else { finite };
        f32::from_bits(magnitude | (bits as u32 & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> u16 {
        let magnitude = x.to_bits() & !SIGN;
        let rounded = round_magnitude::<10, 15>(magnitude);
        let rounded = if rounded > 0x7c00 { 0x7c00 } else { rounded };
        let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        let out = if magnitude > 0x7f80_0000 { nan } else { rounded };
        (out | (x.to_bits() & SIGN) >> 16) as u16
    }
}

impl Narrow for Brain {
    type Bits = u16;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits((bits as u32) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> u16 {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        (if bits & !SIGN > 0x7f80_0000 { 0x7fc0 } else { rounded }) as u16
    }
}

impl Narrow for E4M3 {
    type Bits = u8;
    #[inline(always)]
    fn widen(bits: u8) -> f32 {
        let magnitude = bits as u32 & 0x7f;
        let finite = widen_finite::<3, 7>(magnitude).to_bits();
        let magnitude = if magnitude == 0x7f { 0x7fc0_0000 } else { finite };
        f32::from_bits(magnitude | (bits as u32 & 0x80) << 24)
    }
    #[inline(always)]
    fn narrow(x: f32) -> u8 {
        let magnitude = x.to_bits() & !SIGN;
        let rounded = round_magnitude::<3, 7>(magnitude);
        let rounded = if rounded > 0x7e { 0x7e } else { rounded };
        let out = if magnitude > 0x7f80_0000 { 0x7f } else { rounded };
        (out | (x.to_bits() & SIGN) >> 24) as u8
    }
}

impl Narrow for E5M2 {
    type Bits = u8;
    #[inline(always)]
    fn widen(bits: u8) -> f32 {
        Half::widen((bits as u16) << 8)
    }
    #[inline(always)]
    fn narrow(x: f32) -> u8 {
        let magnitude = x.to_bits() & !SIGN;
        let rounded = round_magnitude::<2, 15>(magnitude);
        let rounded = if rounded > 0x7c { 0x7c } else { rounded };
        let out = if magnitude > 0x7f80_0000 { 0x7f } else { rounded };
        (out | (x.to_bits() & SIGN) >> 24) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_base::{F8E4M3, F8E5M2};
    use half::{bf16, f16};

    fn samples() -> impl Iterator<Item = f32> {
        // Every exponent, with mantissas around the ties of each format.
        (0..=u32::MAX >> 16).flat_map(|top| [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map(|low| f32::from_bits(top << 16 | low)))
    }

    #[test]
    fn narrowing_agrees_with_plain_implementations() {
        for x in samples().filter(|x| !x.is_nan()) {
            assert_eq!(Half::narrow(x), f16::from_f32_const(x).to_bits(), "{x:e}");
            assert_eq!(Brain::narrow(x), bf16::from_f32(x).to_bits(), "{x:e}");
            assert_eq!(E4M3::narrow(x), F8E4M3::from_f32(x).0, "{x:e}");
            assert_eq!(E5M2::narrow(x), F8E5M2::from_f32(x).0, "{x:e}");
        }
        for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)] {
            assert!(f16::from_bits(Half::narrow(nan)).is_nan() && bf16::from_bits(Brain::narrow(nan)).is_nan());
            assert!(F8E4M3(E4M3::narrow(nan)).to_f32().is_nan() && F8E5M2(E5M2::narrow(nan)).to_f32().is_nan());
        }
    }

    #[test]
    fn widening_agrees_with_plain_implementations() {
        let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        for bits in 0..=u16::MAX {
            assert!(same(Half::widen(bits), f16::from_bits(bits).to_f32_const()), "{bits:#x}");
        }
        for bits in 0..=u8::MAX {
            assert!(same(E4M3::widen(bits), F8E4M3(bits).to_f32()), "{bits:#x}");
            assert!(same(E5M2::widen(bits), F8E5M2(bits).to_f32()), "{bits:#x}");
        }
    }
}
