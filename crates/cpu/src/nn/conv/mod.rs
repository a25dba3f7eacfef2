//! Convolutions and their derivatives.

mod plain;

use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Conv;

/// See [`Conv`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn run(call: &Conv) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 => plain::run::<f32>(call),
            DType::F64 => plain::run::<f64>(call),
            DType::U8 => plain::run::<u8>(call),
            DType::I8 => plain::run::<i8>(call),
            DType::I16 => plain::run::<i16>(call),
            DType::I32 => plain::run::<i32>(call),
            DType::I64 => plain::run::<i64>(call),
            other => return Err(lacking("convolution", other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}
