//! What the executor calls: steps on runs of adjacent elements, and in what registers they keep values.

use flambeau_base::DType;

/// Addresses of a step's arguments; those past its arity repeat the first.
pub type Args = [*const u8; 3];

/// Computes `n` elements: result, arguments, count. A result may stand where an argument of its size stood.
pub type StepFn = unsafe fn(*mut u8, Args, usize);

/// How a value is held between steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// A byte, 0 or 1.
    Bool,
    /// Integers up to 32 bits but `uint32`, in two's complement.
    I32,
    /// Wider integers, signed, in two's complement.
    I64,
    /// `uint64`; what the sign does not touch is computed as [`Class::I64`].
    U64,
    /// `float32` and the narrower floats, widened.
    F32,
    /// `float64`.
    F64,
    /// Two `f32`.
    C64,
    /// Two `f64`.
    C128,
}

impl Class {
    /// How values of a dtype are held.
    pub fn of(dtype: DType) -> Class {
        match dtype {
            DType::Bool => Class::Bool,
            DType::U64 => Class::U64,
            DType::F64 => Class::F64,
            DType::C64 => Class::C64,
            DType::C128 => Class::C128,
            DType::I64 | DType::U32 => Class::I64,
            d if d.is_float() => Class::F32,
            _ => Class::I32,
        }
    }

    /// Bytes an element.
    pub fn size(self) -> usize {
        match self {
            Class::Bool => 1,
            Class::F32 | Class::I32 => 4,
            Class::I64 | Class::U64 | Class::F64 | Class::C64 => 8,
            Class::C128 => 16,
        }
    }
}

/// Whether memory of a dtype holds what a register of its class holds.
///
/// A bool's byte may be any number in memory (`x.view(torch.bool)`), so it is read as one, but written as it is.
pub fn is_native(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U64 | DType::C64 | DType::C128)
}
