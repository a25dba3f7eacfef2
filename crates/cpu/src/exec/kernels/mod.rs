//! Steps compiled for each instruction set, and the choice among them.

mod convert;
mod float;
#[cfg(target_arch = "x86_64")]
mod half_x86;
mod integer;
mod level;
mod loops;
pub(crate) mod narrow;
mod rare;

use super::step::{Class, StepFn};
use crate::isa::{self, Isa};
use flambeau_base::DType;
use flambeau_ir::ScalarOp;
use level::Level;

pub use convert::between;

macro_rules! choose {
    ($($f:ident)::+($($arg:expr),*)) => {
        match isa::level() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => $($f)::+::<level::Avx512>($($arg),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => $($f)::+::<level::Avx2>($($arg),*),
            _ => $($f)::+::<level::Portable>($($arg),*),
        }
    };
}

fn step_for<L: Level>(op: ScalarOp, class: Class) -> Option<StepFn> {
    match op {
        ScalarOp::Special(f) => return rare::special_step(f, class),
        ScalarOp::Compose => return rare::compose(class),
        ScalarOp::Gcd | ScalarOp::Lcm => return rare::divisor_step(op, class),
        _ => {}
    }
    match class {
        Class::Bool => integer::bool_step::<L>(op),
        Class::I32 => integer::signed_32_step::<L>(op),
        Class::I64 => integer::signed_step::<L>(op),
        Class::U64 => integer::unsigned_step::<L>(op),
        Class::F32 => float::f32::step::<L>(op),
        Class::F64 => float::f64::step::<L>(op),
        Class::C64 | Class::C128 => convert::complex_step::<L>(op, class),
    }
}

fn is_zero_for<L: Level>(class: Class) -> StepFn {
    match class {
        Class::Bool => L::unary::<integer::IsZero<u8>>,
        Class::I32 => L::unary::<integer::IsZero<i32>>,
        _ => L::unary::<integer::IsZero<i64>>,
    }
}

/// The step of an operation in a class; none where the class lacks it.
pub fn step(op: ScalarOp, class: Class) -> Option<StepFn> {
    choose!(step_for(op, class))
}

/// See [`convert::load`].
pub fn load(dtype: DType) -> StepFn {
    choose!(convert::load(dtype))
}

/// See [`convert::store`].
pub fn store(dtype: DType) -> StepFn {
    choose!(convert::store(dtype))
}

/// See [`convert::copy`].
pub fn copy(class: Class) -> StepFn {
    choose!(convert::copy(class))
}

/// See [`convert::round`].
pub fn round(dtype: DType) -> Option<StepFn> {
    choose!(convert::round(dtype))
}

/// See [`convert::convert`].
pub fn convert(from: Class, to: DType) -> Option<StepFn> {
    choose!(convert::convert(from, to))
}

/// Which integers are zero, a byte each.
pub fn is_zero(class: Class) -> StepFn {
    choose!(is_zero_for(class))
}
