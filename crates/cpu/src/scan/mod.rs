//! Scans along a dimension: sums, products, extremes so far, and what counts elements in order (medians).
//!
//! A row is scanned by one thread in the order of its elements, so results depend on the row alone. Where the
//! dimension is not the fastest, blocks of neighbouring columns are scanned together.

mod order;
mod rows;

pub use order::kth;

use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::{Scan, ScanKind};
use num_complex::{Complex32, Complex64};
use rows::{Columns, ComplexLogSumExp, Extreme, Fold, LogSumExp, Product, Row, Sums};

/// Columns that are scanned together.
const COLUMNS: usize = 64;

/// See [`Scan`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn scan(call: &Scan) -> Result<()> {
    macro_rules! run {
        ($fold:ident: $($dtype:ident => $t:ty),*) => {
            match call.dtype {
                $(DType::$dtype => {
                    // SAFETY: the caller's.
                    unsafe { along::<$fold<$t>>(call) }
                    Ok(())
                })*
                other => Err(lacking("scan", other, DeviceKind::Cpu)),
            }
        };
    }
    use half::{bf16, f16};
    match call.kind {
        ScanKind::Sum => run!(Sums: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I64 => i64, C64 => Complex32, C128 => Complex64),
        ScanKind::Prod => run!(Product: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I64 => i64, C64 => Complex32, C128 => Complex64),
        ScanKind::LogSumExp if call.dtype.is_complex() => run!(ComplexLogSumExp: C64 => Complex32, C128 => Complex64),
        ScanKind::LogSumExp => run!(LogSumExp: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16),
        ScanKind::Max => {
            type Most<T> = Extreme<T, true>;
            run!(Most: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I64 => i64, I32 => i32, I16 => i16, I8 => i8, U8 => u8, Bool => u8)
        }
        ScanKind::Min => {
            type Least<T> = Extreme<T, false>;
            run!(Least: F32 => f32, F64 => f64, F16 => f16, BF16 => bf16, I64 => i64, I32 => i32, I16 => i16, I8 => i8, U8 => u8, Bool => u8)
        }
    }
}

unsafe fn along<F: Fold>(call: &Scan) {
    let [outer, n, inner] = call.sizes;
    let shared = Shared(*call);
    let work = 32 * 1024 / n.max(1);
    if inner == 1 {
        parallel_for(outer, work.max(1), &|range| {
            let call = &{ &shared }.0;
            for row in range {
                // SAFETY: the row lies inside the operands; the rest is the caller's.
                unsafe { Row::<F>::of(call, row * n).scan(n) }
            }
        });
        return;
    }
    let blocks = inner.div_ceil(COLUMNS);
    parallel_for(outer * blocks, (work / COLUMNS).max(1), &|range| {
        let call = &{ &shared }.0;
        for block in range {
            let first = block % blocks * COLUMNS;
            let at = block / blocks * n * inner + first;
            // SAFETY: the columns lie inside the operands; the rest is the caller's.
            unsafe { Columns::<F>::new(call, at, inner, COLUMNS.min(inner - first)).scan(n) }
        }
    });
}
