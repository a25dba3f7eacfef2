//! The element of a given rank of each row.

use super::rows::Ordered;
use crate::nn::real::{Shared, grain};
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Kth;
use half::{bf16, f16};
use std::cmp::Ordering;

/// See [`Kth`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn kth(call: &Kth) -> Result<()> {
    macro_rules! run {
        ($($dtype:ident => $t:ty),*) => {
            match call.dtype {
                $(DType::$dtype => {
                    // SAFETY: the caller's.
                    unsafe { rows::<$t>(call) };
                    Ok(())
                })*
                other => Err(lacking("median", other, DeviceKind::Cpu)),
            }
        };
    }
    run!(F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I64 => i64, I32 => i32, I16 => i16, I8 => i8, U8 => u8)
}

unsafe fn rows<T: Ordered>(call: &Kth) {
    let [rows, n] = call.sizes;
    let shared = Shared(*call);
    parallel_for(rows, grain(n, 16), &|range| {
        let call = &{ &shared }.0;
        let mut places: Vec<u32> = Vec::with_capacity(n);
        for row in range {
            // SAFETY: the row lies inside the operands.
            unsafe {
                let x = std::slice::from_raw_parts(call.input.cast::<T>().add(row * n), n);
                let at = place(x, call.skip_nan, &mut places);
                *call.out.cast::<T>().add(row) = x[at];
                *call.indices.add(row) = at as i64;
            }
        }
    });
}

/// Where the lower median is; with NaN in the row, where the first one is, unless they are skipped.
fn place<T: Ordered>(x: &[T], skip_nan: bool, places: &mut Vec<u32>) -> usize {
    places.clear();
    if let Some(first) = x.iter().position(|v| v.missing()) {
        if !skip_nan || x.iter().all(|v| v.missing()) {
            return first;
        }
        places.extend((0..x.len() as u32).filter(|&i| !x[i as usize].missing()));
    } else {
        places.extend(0..x.len() as u32);
    }
    let rank = (places.len() - 1) / 2;
    // Ties are put in the order of their places.
    let order = |&a: &u32, &b: &u32| -> Ordering {
        let (p, q) = (x[a as usize], x[b as usize]);
        match (p.reaches(q), q.reaches(p)) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => a.cmp(&b),
        }
    };
    let (_, at, _) = places.select_nth_unstable_by(rank, order);
    *at as usize
}
