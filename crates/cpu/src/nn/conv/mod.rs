//! Convolutions and their derivatives.

mod operands;
mod plain;
mod product;
mod windows;

use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Conv;

/// See [`Conv`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn run(call: &Conv) -> Result<()> {
    // Vectors are gathered with steps of 32 bits.
    let far = call.stride.iter().any(|&s| s > 1 << 20);
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 if far => plain::run::<f32>(call),
            DType::F64 if far => plain::run::<f64>(call),
            DType::F32 => product::run::<f32>(&trivial_first(call)),
            DType::F64 => product::run::<f64>(&trivial_first(call)),
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

/// The same with dimensions of a single element before the others: the last one is walked vector by vector.
fn trivial_first(call: &Conv) -> Conv {
    let mut out = *call;
    let trivial = |d: &usize| call.input[*d] == 1 && call.kernel[*d] == 1 && call.output[*d] == 1;
    let order = (0..3).filter(trivial).chain((0..3).filter(|d| !trivial(d)));
    for (to, from) in order.enumerate() {
        let sizes = [
            (&mut out.input, &call.input),
            (&mut out.kernel, &call.kernel),
            (&mut out.output, &call.output),
            (&mut out.stride, &call.stride),
            (&mut out.padding, &call.padding),
            (&mut out.dilation, &call.dilation),
        ];
        for (new, old) in sizes {
            new[to] = old[from];
        }
        for (new, old) in [(&mut out.x, &call.x), (&mut out.w, &call.w), (&mut out.y, &call.y)] {
            new.strides[2 + to] = old.strides[2 + from];
        }
    }
    out
}
