//! The element types that draws fill.

use half::{bf16, f16};

/// An element type that draws can fill: the integers of 8 to 64 bits, `bool`, and the types of [`Real`].
pub trait Element: Copy + Default + Send + 'static {
    /// The type's name in messages.
    const NAME: &'static str;
    /// The least and the greatest value, where the type is an integer.
    const BOUNDS: Option<(i64, i64)>;
    /// Bits of the significand with the leading one, where the type is a fraction; 0 otherwise.
    const DIGITS: u32;
    /// The greatest finite value.
    const MAX: f64;
    /// How many integers [`super::Stream::random`] draws from; 0 stands for 2^64.
    const NATURAL_RANGE: u64;
    /// Whether it takes two words for each.
    const WIDE: bool = false;
    /// Whether the type takes part in draws of all 64-bit integers.
    const WHOLE: bool = false;

    /// The value nearest to an integer, or its low bits.
    fn from_i64(value: i64) -> Self;
    /// The value nearest to a number (through `f32` for half precision), or its integer part.
    fn from_f64(value: f64) -> Self;
    /// The value as a number.
    fn to_f64(self) -> f64;
}

/// A floating-point element type: `f32`, `f64`, `f16`, `bf16`.
pub trait Real: Element + PartialEq {
    /// The least positive normal value.
    const LEAST: f64;

    /// Fills `out` from uniform words, as `fraction * (to - from) + from` in the type that the arithmetic is done in.
    fn fill_uniform(stream: &mut super::Stream, out: &mut [Self], from: f64, to: f64);
    /// Fills `out`, 16 numbers or more, by the large form of the normal draw.
    fn fill_normal(stream: &mut super::Stream, out: &mut [Self], mean: f64, std: f64);
}

macro_rules! integer {
    ($($ty:ty $(, $flag:ident)*;)*) => {$(
        impl Element for $ty {
            const NAME: &'static str = stringify!($ty);
            const BOUNDS: Option<(i64, i64)> =
                Some((<$ty>::MIN as i64, if <$ty>::MAX as u64 > i64::MAX as u64 { i64::MAX } else { <$ty>::MAX as i64 }));
            const DIGITS: u32 = 0;
            const MAX: f64 = <$ty>::MAX as f64;
            const NATURAL_RANGE: u64 = (<$ty>::MAX as u64).wrapping_add(1);
            $(const $flag: bool = true;)*

            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $ty
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as i64 as $ty
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

integer! {
    i8; i16; i32; i64, WIDE, WHOLE; u8; u16; u32; u64, WIDE;
}

impl Element for bool {
    const NAME: &'static str = "bool";
    const BOUNDS: Option<(i64, i64)> = Some((0, 1));
    const DIGITS: u32 = 0;
    const MAX: f64 = 1.0;
    const NATURAL_RANGE: u64 = 2;

    fn from_i64(value: i64) -> Self {
        value != 0
    }
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
}

macro_rules! fraction {
    ($($ty:ty, $digits:expr, $max:expr, [$($flag:ident)*], $from_i64:expr, $from_f64:expr, $to_f64:expr;)*) => {$(
        impl Element for $ty {
            const NAME: &'static str = stringify!($ty);
            const BOUNDS: Option<(i64, i64)> = None;
            const DIGITS: u32 = $digits;
            const MAX: f64 = $max;
            const NATURAL_RANGE: u64 = (1 << $digits) + 1;
            $(const $flag: bool = true;)*

            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                let convert: fn(i64) -> Self = $from_i64;
                convert(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                let convert: fn(f64) -> Self = $from_f64;
                convert(value)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let convert: fn(Self) -> f64 = $to_f64;
                convert(self)
            }
        }
    )*};
}

fraction! {
    f64, 53, f64::MAX, [WIDE WHOLE], |v| v as f64, |v| v, |v| v;
    f32, 24, f32::MAX as f64, [WHOLE], |v| v as f32, |v| v as f32, f64::from;
    f16, 11, 65504.0, [], |v| f16::from_f32(v as f32), |v| f16::from_f32(v as f32), f16::to_f64;
    bf16, 8, 3.3895313892515355e38, [WHOLE], |v| bf16::from_f32(v as f32), |v| bf16::from_f32(v as f32), bf16::to_f64;
}
