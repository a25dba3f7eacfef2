//! Products of integers, with wrapping arithmetic: a simple loop over rows that the compiler vectorises.

use std::ops::Range;

use super::{BatchAxis, Bias, Gemm, GemmElement, Matrix, Shared, batch_item, batch_len};
use crate::pool;

/// Columns that are summed at a time, in an array on the stack.
const COLUMNS: usize = 64;

/// Multiply-adds that are worth a thread.
const GRAIN: usize = 32 << 10;

/// Arithmetic modulo a power of two; the order of a sum does not matter.
pub(super) trait Wrapping: GemmElement<Alpha = Self> + Default + PartialEq {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! impl_wrapping {
    ($($integer:ty),*) => {$(
        impl Wrapping for $integer {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

impl_wrapping!(u8, i8, i16, i32, i64);

/// # Safety
///
/// As for [`super::gemm_batched`].
pub(super) unsafe fn run<T: Wrapping>(product: &Gemm<T>, batch: &[BatchAxis]) {
    let count = batch_len(batch);
    if product.m == 0 || product.n == 0 || count == 0 {
        return;
    }
    let grain = GRAIN.div_ceil(product.n.saturating_mul(product.k).max(1));
    let shared = Shared(*product);
    pool::parallel_for(count * product.m, grain, &|rows: Range<usize>| {
        let product = &{ &shared }.0;
        let mut row = rows.start;
        while row < rows.end {
            let item = batch_item(product, batch, row / product.m);
            let first = row % product.m;
            let last = (first + rows.end - row).min(product.m);
            // SAFETY: rows of the result that no other range has, by the caller's promise.
            (first..last).for_each(|i| unsafe { compute_row(&item, i) });
            row += last - first;
        }
    });
}

/// # Safety
///
/// As for [`super::gemm`]; nothing else uses row `i` of the result.
unsafe fn compute_row<T: Wrapping>(product: &Gemm<T>, i: usize) {
    let Gemm { n, k, a, b, c, alpha, accumulate, bias, .. } = *product;
    for first in (0..n).step_by(COLUMNS) {
        let count = COLUMNS.min(n - first);
        let mut sums = [T::default(); COLUMNS];
        // SAFETY: indices stay below m, n and k.
        unsafe {
            for p in 0..k {
                let x = *a.ptr.offset(i as isize * a.row + p as isize * a.column);
                add_multiple(&mut sums, x, b, p, first, count);
            }
            for (j, &sum) in sums[..count].iter().enumerate() {
                let column = first + j;
                let to = c.ptr.offset(i as isize * c.row + column as isize * c.column);
                let mut value = sum.mul(alpha);
                if accumulate {
                    value = value.add(*to);
                }
                *to = match bias {
                    Bias::None => value,
                    Bias::Columns(bias) => value.add(*bias.add(column)),
                    Bias::Rows(bias) => value.add(*bias.add(i)),
                };
            }
        }
    }
}

/// `sums += x * b[p, first..first + count]`
///
/// # Safety
///
/// Those elements of `b` are readable.
#[inline(always)]
unsafe fn add_multiple<T: Wrapping>(sums: &mut [T; COLUMNS], x: T, b: Matrix<T>, p: usize, first: usize, count: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        let row = b.ptr.offset(p as isize * b.row + first as isize * b.column);
        if b.column == 1 && count == COLUMNS {
            let row = &*row.cast::<[T; COLUMNS]>();
            for (sum, &y) in sums.iter_mut().zip(row) {
                *sum = sum.add(x.mul(y));
            }
        } else {
            for (j, sum) in sums[..count].iter_mut().enumerate() {
                *sum = sum.add(x.mul(*row.offset(j as isize * b.column)));
            }
        }
    }
}
