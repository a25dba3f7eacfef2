//! Element types.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The type of a tensor's elements.
///
/// ```
/// use flambeau_base::DType;
/// assert_eq!(DType::BF16.size(), 2);
/// assert_eq!(DType::BF16.to_string(), "bfloat16");
/// assert_eq!(DType::F16.promote(DType::BF16).unwrap(), DType::F32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// `bool`, one byte.
    Bool,
    /// `uint8`.
    U8,
    /// `int8`.
    I8,
    /// `int16`.
    I16,
    /// `int32`.
    I32,
    /// `int64`.
    I64,
    /// `uint16`.
    U16,
    /// `uint32`.
    U32,
    /// `uint64`.
    U64,
    /// `float8_e4m3fn`: no infinity, largest value 448.
    F8E4M3,
    /// `float8_e5m2`.
    F8E5M2,
    /// `float16`, IEEE 754 binary16.
    F16,
    /// `bfloat16`: the upper half of a `float32`.
    BF16,
    /// `float32`.
    F32,
    /// `float64`.
    F64,
    /// `complex64`: two `float32`.
    C64,
    /// `complex128`: two `float64`.
    C128,
}

/// Categories of type promotion, from the lowest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Category {
    /// Truth values.
    Bool,
    /// Integers.
    Integer,
    /// Floating point numbers.
    Float,
    /// Complex numbers.
    Complex,
}

use DType::*;

impl DType {
    /// All of them.
    pub const ALL: [DType; 17] = [Bool, U8, I8, I16, I32, I64, U16, U32, U64, F8E4M3, F8E5M2, F16, BF16, F32, F64, C64, C128];

    /// Bytes an element.
    pub const fn size(self) -> usize {
        match self {
            Bool | U8 | I8 | F8E4M3 | F8E5M2 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// PyTorch's name, such as `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "uint8",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            U16 => "uint16",
            U32 => "uint32",
            U64 => "uint64",
            F8E4M3 => "float8_e4m3fn",
            F8E5M2 => "float8_e5m2",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
            C128 => "complex128",
        }
    }

    /// The category in type promotion.
    pub const fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64 => Category::Integer,
            F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64 => Category::Float,
            C64 | C128 => Category::Complex,
        }
    }

    /// Whether it is a real floating point type.
    pub const fn is_float(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2 | F16 | BF16 | F32 | F64)
    }

    /// Whether it is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// Whether it is an integer type or bool.
    pub const fn is_integral(self) -> bool {
        !self.is_float() && !self.is_complex()
    }

    /// Whether gradients can be taken in it.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Whether it can hold negative numbers.
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8 | U16 | U32 | U64)
    }

    /// Whether it is a float that is computed in `float32` and rounded after each step.
    pub const fn is_reduced_float(self) -> bool {
        matches!(self, F8E4M3 | F8E5M2 | F16 | BF16)
    }

    /// The type in which sums and products of this type are accumulated.
    pub const fn accumulator(self) -> DType {
        match self {
            F8E4M3 | F8E5M2 | F16 | BF16 | F32 => F32,
            F64 => F64,
            C64 => C64,
            C128 => C128,
            U64 => U64,
            _ => I64,
        }
    }

    /// The complex type with parts of this type (or of the nearest wider one).
    pub const fn to_complex(self) -> DType {
        match self {
            F64 | C128 => C128,
            _ => C64,
        }
    }

    /// The type of a complex type's parts; itself for the others.
    pub const fn to_real(self) -> DType {
        match self {
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }

    /// Smallest and largest value of an integer type.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            U8 => (0, u8::MAX as i128),
            I8 => (i8::MIN as i128, i8::MAX as i128),
            I16 => (i16::MIN as i128, i16::MAX as i128),
            I32 => (i32::MIN as i128, i32::MAX as i128),
            I64 => (i64::MIN as i128, i64::MAX as i128),
            U16 => (0, u16::MAX as i128),
            U32 => (0, u32::MAX as i128),
            U64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// The type that holds the values of both.
    ///
    /// `RuntimeError` for pairs that PyTorch does not promote: `uint16`-`uint64` with other integers, 8-bit floats.
    pub fn promote(self, other: DType) -> Result<DType> {
        if self == other {
            return Ok(self);
        }
        let (low, high) = if self.category() <= other.category() { (self, other) } else { (other, self) };
        let fail = || Error::runtime(format!("promotion of {self} and {other} is not supported: convert one of them with .to()"));
        if matches!(low, F8E4M3 | F8E5M2) || matches!(high, F8E4M3 | F8E5M2) {
            return Err(fail());
        }
        match (low.category(), high.category()) {
            (Category::Integer, Category::Integer) => promote_integers(low, high).ok_or_else(fail),
            (Category::Float, Category::Float) => Ok(match (low, high) {
                (F64, _) | (_, F64) => F64,
                _ => F32,
            }),
            (Category::Complex, Category::Complex) => Ok(C128),
            (Category::Float, Category::Complex) if low == F64 => Ok(C128),
            _ => Ok(high),
        }
    }

    /// Whether PyTorch converts implicitly from this type to the other, as for `out=` and in-place results.
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }
}

fn promote_integers(a: DType, b: DType) -> Option<DType> {
    if matches!(a, U16 | U32 | U64) || matches!(b, U16 | U32 | U64) {
        return None;
    }
    let unsigned = a == U8 || b == U8;
    Some(match if a.size() >= b.size() { a } else { b } {
        wide if !unsigned => wide,
        U8 | I8 => I16,
        wide => wide,
    })
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    /// Takes PyTorch's names and their older aliases (`float`, `half`, `long`, ...).
    fn from_str(s: &str) -> Result<DType> {
        Ok(match s.strip_prefix("torch.").unwrap_or(s) {
            "float" => F32,
            "double" => F64,
            "half" => F16,
            "int" => I32,
            "long" => I64,
            "short" => I16,
            "cfloat" => C64,
            "cdouble" => C128,
            name => match DType::ALL.iter().find(|d| d.name() == name) {
                Some(&dtype) => dtype,
                None => return Err(Error::type_error(format!("'{s}' is not a dtype"))),
            },
        })
    }
}
