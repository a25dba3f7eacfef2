//! A number that comes with a call.

use crate::{Complex64, DType, Error, Result};
use std::fmt;

/// A Python-like number: its category takes part in type promotion, its width does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A floating point number.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
}

impl Scalar {
    /// The dtype that the number stands for when there is no tensor of its category.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::UInt(_) => DType::U64,
            Scalar::Float(_) => crate::default_dtype(),
            Scalar::Complex(_) => crate::default_dtype().to_complex(),
        }
    }

    /// The number as a float; a complex one gives its real part.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(x) => x,
            Scalar::Complex(z) => z.re,
        }
    }

    /// The number as an integer: floats are cut off towards zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::UInt(u) => u as i64,
            Scalar::Float(x) => x as i64,
            Scalar::Complex(z) => z.re as i64,
        }
    }

    /// Whether the number differs from zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::UInt(u) => u != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Complex(z) => z.re != 0.0 || z.im != 0.0,
        }
    }

    /// Whether it is this real number.
    pub fn is(self, x: f64) -> bool {
        self.to_complex() == Complex64::new(x, 0.0)
    }

    /// The number as a complex one.
    pub fn to_complex(self) -> Complex64 {
        match self {
            Scalar::Complex(z) => z,
            other => Complex64::new(other.to_f64(), 0.0),
        }
    }

    /// Whether it is an integer (or bool).
    pub fn is_integral(self) -> bool {
        matches!(self, Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_))
    }

    /// Refuses a number that the dtype cannot hold, as PyTorch does ("value cannot be converted"): an integer out of
    /// the range of an integer dtype, an imaginary part where numbers are real.
    pub fn checked_for(self, op: &str, dtype: DType) -> Result<Scalar> {
        if let Scalar::Complex(z) = self
            && z.im != 0.0
            && !dtype.is_complex()
        {
            return Err(Error::runtime(format!(
                "{op}: value cannot be converted to type {dtype} without overflow: {self} has an imaginary part; take its real part, or a complex tensor"
            )));
        }
        if let (Some((low, high)), false) = (dtype.integer_range(), matches!(self, Scalar::Bool(_))) {
            let fits = match self {
                // A negative number stands for its two's complement in an unsigned dtype.
                Scalar::Int(i) => (i as i128) >= if low == 0 { -high } else { low } && (i as i128) <= high,
                Scalar::UInt(u) => (u as i128) <= high,
                Scalar::Float(x) => x.is_finite() && x >= low as f64 && x <= high as f64,
                _ => true,
            };
            if !fits {
                return Err(Error::runtime(format!(
                    "{op}: value cannot be converted to type {dtype} without overflow: {self} is outside [{low}, {high}]"
                )));
            }
        }
        Ok(self)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::UInt(u) => write!(f, "{u}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(z) => write!(f, "({:?}{:+?}j)", z.re, z.im),
        }
    }
}

macro_rules! from {
    ($($t:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$t> for Scalar {
            fn from(x: $t) -> Scalar {
                Scalar::$variant(x as $wide)
            }
        }
    )*};
}
from!(bool => Bool as bool, i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64, u8 => Int as i64,
      usize => Int as i64, f32 => Float as f64, f64 => Float as f64);

impl From<Complex64> for Scalar {
    fn from(z: Complex64) -> Scalar {
        Scalar::Complex(z)
    }
}
