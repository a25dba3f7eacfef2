//! What is done with elements that meet.

use flambeau_base::{Complex32, Complex64, F8E4M3, F8E5M2, bf16, f16};

/// Numbers that can be put together.
pub(super) trait Combine: Copy + Send + Sync {
    /// Sum; integers wrap, truths are joined by or.
    fn plus(self, other: Self) -> Self;
    /// Product; integers wrap, truths are joined by and.
    fn times(self, other: Self) -> Self;
    /// The larger; NaN if one is.
    fn larger(self, other: Self) -> Self;
    /// The smaller; NaN if one is.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Combine for $t {
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            fn times(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            fn larger(self, other: $t) -> $t {
                self.max(other)
            }
            fn smaller(self, other: $t) -> $t {
                self.min(other)
            }
        }
    )*};
}
integers!(u8 i8 i16 i32 i64 u16 u32 u64);

macro_rules! floats {
    ($($t:ty, $wide:expr, $narrow:expr;)*) => {$(
        impl Combine for $t {
            fn plus(self, other: $t) -> $t {
                $narrow($wide(self) + $wide(other))
            }
            fn times(self, other: $t) -> $t {
                $narrow($wide(self) * $wide(other))
            }
            fn larger(self, other: $t) -> $t {
                if $wide(self) >= $wide(other) || $wide(self).is_nan() { self } else { other }
            }
            fn smaller(self, other: $t) -> $t {
                if $wide(self) <= $wide(other) || $wide(self).is_nan() { self } else { other }
            }
        }
    )*};
}
floats! {
    f32, |x: f32| x, |x: f32| x;
    f64, |x: f64| x, |x: f64| x;
    f16, f16::to_f32, f16::from_f32;
    bf16, bf16::to_f32, bf16::from_f32;
    F8E4M3, F8E4M3::to_f32, F8E4M3::from_f32;
    F8E5M2, F8E5M2::to_f32, F8E5M2::from_f32;
}

/// A truth value's byte, which may be any number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Truth(u8);

impl Combine for Truth {
    fn plus(self, other: Truth) -> Truth {
        Truth((self.0 != 0 || other.0 != 0) as u8)
    }
    fn times(self, other: Truth) -> Truth {
        Truth((self.0 != 0 && other.0 != 0) as u8)
    }
    fn larger(self, other: Truth) -> Truth {
        self.plus(other)
    }
    fn smaller(self, other: Truth) -> Truth {
        self.times(other)
    }
}

macro_rules! complexes {
    ($($t:ty)*) => {$(
        impl Combine for $t {
            fn plus(self, other: $t) -> $t {
                self + other
            }
            fn times(self, other: $t) -> $t {
                self * other
            }
            // Complex numbers have no order; the engine refuses to ask for one.
            fn larger(self, other: $t) -> $t {
                other
            }
            fn smaller(self, other: $t) -> $t {
                other
            }
        }
    )*};
}
complexes!(Complex32 Complex64);

/// Runs an expression with `$t` standing for a type of the size of a dtype.
macro_rules! with_bits {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            _ => {
                type $t = [u64; 2];
                $body
            }
        }
    };
}

/// Runs an expression with `$t` standing for the type of a dtype, as one that is [`Combine`].
macro_rules! with_number {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use flambeau_base::{Complex32, Complex64, DType, F8E4M3, F8E5M2, bf16, f16};
        match $dtype {
            DType::Bool => {
                type $t = $crate::index::element::Truth;
                $body
            }
            DType::U8 => {
                type $t = u8;
                $body
            }
            DType::I8 => {
                type $t = i8;
                $body
            }
            DType::I16 => {
                type $t = i16;
                $body
            }
            DType::I32 => {
                type $t = i32;
                $body
            }
            DType::I64 => {
                type $t = i64;
                $body
            }
            DType::U16 => {
                type $t = u16;
                $body
            }
            DType::U32 => {
                type $t = u32;
                $body
            }
            DType::U64 => {
                type $t = u64;
                $body
            }
            DType::F8E4M3 => {
                type $t = F8E4M3;
                $body
            }
            DType::F8E5M2 => {
                type $t = F8E5M2;
                $body
            }
            DType::F16 => {
                type $t = f16;
                $body
            }
            DType::BF16 => {
                type $t = bf16;
                $body
            }
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::C64 => {
                type $t = Complex32;
                $body
            }
            DType::C128 => {
                type $t = Complex64;
                $body
            }
        }
    }};
}
pub(super) use {with_bits, with_number};
