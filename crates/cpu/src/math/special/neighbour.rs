//! How numbers are made up: the next one towards another in each of the formats, mantissa and exponent.

macro_rules! next {
    ($($(#[$doc:meta])* $name:ident, $t:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(x: $t, towards: $t) -> $t {
            if x.is_nan() || towards.is_nan() {
                return x + towards;
            }
            if x == towards {
                return towards;
            }
            if x == 0.0 {
                return <$t>::from_bits(1).copysign(towards);
            }
            let bits = x.to_bits();
            <$t>::from_bits(if (towards > x) == (x > 0.0) { bits + 1 } else { bits - 1 })
        }
    )*};
}

next! {
    /// The next `f32` after `x` towards another.
    next_f32, f32;
    /// The next `f64` after `x` towards another.
    next_f64, f64;
}

/// The next `bfloat16` after `x` towards another, both of which are such.
pub fn next_brain(x: f32, towards: f32) -> f32 {
    if x.is_nan() || towards.is_nan() {
        return x + towards;
    }
    if x == towards {
        return towards;
    }
    if x == 0.0 {
        return f32::from_bits(1 << 16).copysign(towards);
    }
    let bits = x.to_bits();
    f32::from_bits(if (towards > x) == (x > 0.0) { bits + (1 << 16) } else { bits - (1 << 16) })
}

/// The next `float16` after `x` towards another, both of which are such.
pub fn next_half(x: f32, towards: f32) -> f32 {
    use flambeau_base::f16;
    if x.is_nan() || towards.is_nan() {
        return x + towards;
    }
    if x == towards {
        return towards;
    }
    if x == 0.0 {
        return f16::from_bits(1).to_f32().copysign(towards);
    }
    let bits = f16::from_f32(x).to_bits();
    f16::from_bits(if (towards > x) == (x > 0.0) { bits + 1 } else { bits - 1 }).to_f32()
}

/// Mantissa, of magnitude in [0.5, 1), and exponent; zero and what is not finite is its own mantissa.
pub fn parts(x: f64) -> (f64, f64) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0.0);
    }
    let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i64;
    // Subnormal numbers are raised first.
    let (x, less) = if exponent(x) == 0 { (x * f64::powi(2.0, 64), 64) } else { (x, 0) };
    let e = exponent(x) - 1022;
    (f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52), (e - less) as f64)
}
