//! The two 8-bit floating point formats of the OCP specification (OFP8, revision 1.0).

/// One 8-bit format: its exponent bias, mantissa bits and largest finite value.
macro_rules! float8 {
    ($(#[$doc:meta])* $name:ident, mantissa $m:expr, bias $bias:expr, nan $nan:expr, overflow $over:expr, max_finite $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(
            /// The bits.
            pub u8,
        );

        impl $name {
            /// The value, exactly.
            pub fn to_f32(self) -> f32 {
                let sign = if self.0 & 0x80 != 0 { -1.0f32 } else { 1.0 };
                let e = ((self.0 & 0x7f) >> $m) as i32;
                let m = (self.0 & ((1 << $m) - 1)) as i32;
                if let Some(special) = Self::special(self.0 & 0x7f) {
                    return sign * special;
                }
                let unit = 1.0 / (1 << $m) as f32;
                let (significand, exponent) = if e == 0 { (m as f32 * unit, 1 - $bias) } else { (1.0 + m as f32 * unit, e - $bias) };
                sign * significand * f32::from_bits(((exponent + 127) as u32) << 23)
            }

            /// The nearest value, ties to even; what is too large, infinity included, becomes 448 (e4m3fn) or infinity (e5m2).
            pub fn from_f32(x: f32) -> Self {
                let sign = ((x.to_bits() >> 24) & 0x80) as u8;
                let a = x.abs();
                if a.is_nan() {
                    return $name(sign | $nan);
                }
                if a >= $max {
                    return $name(sign | $over);
                }
                // Adding a power of two moves the last kept bit to the end of an f64's mantissa, which rounds to even.
                let least = 1 - $bias;
                let exponent = ((a.to_bits() >> 23) as i32 - 127).max(least);
                let quantum = f64::from_bits(((exponent - $m + 1023) as u64) << 52);
                let q = (a as f64 / quantum).round_ties_even() as u32;
                let biased = ((exponent + $bias) as u32) << $m;
                let bits = if q < (1 << $m) { q } else { biased + (q - (1 << $m)) };
                $name(sign | bits as u8)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }
    };
}

float8! {
    /// Four exponent and three mantissa bits, no infinity, largest value 448.
    F8E4M3, mantissa 3, bias 7, nan 0x7f, overflow 0x7e, max_finite 448.0
}

float8! {
    /// Five exponent and two mantissa bits, with infinities, largest finite value 57344.
    F8E5M2, mantissa 2, bias 15, nan 0x7f, overflow 0x7c, max_finite 61440.0
}

impl F8E4M3 {
    fn special(magnitude: u8) -> Option<f32> {
        (magnitude == 0x7f).then_some(f32::NAN)
    }
}

impl F8E5M2 {
    fn special(magnitude: u8) -> Option<f32> {
        match magnitude {
            0x7c => Some(f32::INFINITY),
            0x7d..=0x7f => Some(f32::NAN),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_round_trips() {
        for bits in 0..=255u8 {
            let x = F8E4M3(bits).to_f32();
            assert!(x.is_nan() || F8E4M3::from_f32(x).0 == bits, "e4m3 {bits:#x}");
            let x = F8E5M2(bits).to_f32();
            assert!(x.is_nan() || F8E5M2::from_f32(x).0 == bits, "e5m2 {bits:#x}");
        }
    }

    #[test]
    fn rounds_to_nearest_even_and_overflows() {
        assert_eq!(F8E4M3(0x7e).to_f32(), 448.0);
        assert_eq!(F8E4M3::from_f32(464.0).0, 0x7e);
        assert_eq!(F8E4M3::from_f32(480.0).0, 0x7e);
        assert_eq!(F8E4M3::from_f32(1.0625).to_f32(), 1.0);
        assert_eq!(F8E4M3::from_f32(1.1875).to_f32(), 1.25);
        assert_eq!(F8E5M2::from_f32(61439.0).to_f32(), 57344.0);
        assert_eq!(F8E5M2::from_f32(61440.0).to_f32(), f32::INFINITY);
        assert_eq!(F8E5M2::from_f32(-0.0).0, 0x80);
    }
}
