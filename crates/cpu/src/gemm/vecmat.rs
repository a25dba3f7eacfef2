//! Products of a matrix and a vector, at the speed of memory.
//!
//! Both inner loops read the matrix once, in the order in which it lies, and nothing is packed.
#![allow(clippy::needless_range_loop)] // See `kernel.rs`.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::driver::Plan;
use super::table::Kernels;
use super::vector::{Packed, Vector};
use super::{Bias, Shared, scratch};
use crate::pool;

/// Vectors of partial sums that a dot product keeps, enough to hide the latency of a multiply-add.
const PARTS: usize = 4;
/// Lines that share the vector's numbers while these are in registers.
const LINES: usize = 4;

/// `y[i] = sum over p of a[i * line + p] * x[p]` for `lines` lines of `k` adjacent numbers.
///
/// The sum of one line depends on `k` alone: partial sums by position modulo 4 vectors, then a fixed tree.
///
/// # Safety
///
/// All is readable and writable in that extent; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn dot_lines<V: Vector, S: Packed<V>>(
    a: *const S,
    line: isize,
    x: *const V::Element,
    y: *mut V::Element,
    lines: usize,
    k: usize,
) {
    // SAFETY: as promised.
    unsafe {
        let mut i = 0;
        while i + LINES <= lines {
            let sums = dot_group::<V, S, LINES>(a.offset(i as isize * line), line, x, k);
            y.add(i).cast::<[V::Element; LINES]>().write(sums);
            i += LINES;
        }
        while i < lines {
            let [sum] = dot_group::<V, S, 1>(a.offset(i as isize * line), line, x, k);
            *y.add(i) = sum;
            i += 1;
        }
    }
}

/// # Safety
///
/// As for [`dot_lines`], for `N` lines.
#[inline(always)]
unsafe fn dot_group<V: Vector, S: Packed<V>, const N: usize>(a: *const S, line: isize, x: *const V::Element, k: usize) -> [V::Element; N] {
    // SAFETY: as promised.
    unsafe {
        let mut sums = [[V::splat(V::Element::default()); PARTS]; N];
        let mut p = 0;
        while p + PARTS * V::LANES <= k {
            for part in 0..PARTS {
                let at = p + part * V::LANES;
                let x = V::load(x.add(at));
                for i in 0..N {
                    sums[i][part] = S::load(a.offset(i as isize * line).add(at)).mul_add(x, sums[i][part]);
                }
            }
            p += PARTS * V::LANES;
        }
        while p < k {
            let count = (k - p).min(V::LANES);
            let x = V::load_partial(x.add(p), count);
            for i in 0..N {
                sums[i][0] = S::load_partial(a.offset(i as isize * line).add(p), count).mul_add(x, sums[i][0]);
            }
            p += count;
        }
        let mut totals = [V::Element::default(); N];
        for i in 0..N {
            totals[i] = sums[i][0].add(sums[i][1]).add(sums[i][2].add(sums[i][3])).sum();
        }
        totals
    }
}

/// Steps that are summed up in a register before they are added to the result.
const STEPS: usize = 8;

/// `y[j] = sum over p of x[p] * a[p * step + j]` for `width` columns, where a step's numbers are adjacent.
///
/// The sum of a column depends on `k` alone: eight products at a time, added to the sum of those before.
///
/// # Safety
///
/// All is readable and writable in that extent; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn sum_steps<V: Vector, S: Packed<V>>(
    a: *const S,
    step: isize,
    x: *const V::Element,
    y: *mut V::Element,
    width: usize,
    k: usize,
) {
    // SAFETY: as promised.
    unsafe {
        (0..width).for_each(|j| y.add(j).write(V::Element::default()));
        let mut p = 0;
        while p + STEPS <= k {
            sum_group::<V, S, STEPS>(a.offset(p as isize * step), step, x.add(p), y, width);
            p += STEPS;
        }
        while p < k {
            sum_group::<V, S, 1>(a.offset(p as isize * step), step, x.add(p), y, width);
            p += 1;
        }
    }
}

/// # Safety
///
/// As for [`sum_steps`], for `N` steps.
#[inline(always)]
unsafe fn sum_group<V: Vector, S: Packed<V>, const N: usize>(
    a: *const S,
    step: isize,
    x: *const V::Element,
    y: *mut V::Element,
    width: usize,
) {
    // SAFETY: as promised.
    unsafe {
        let mut factors = [V::splat(*x); N];
        for p in 1..N {
            factors[p] = V::splat(*x.add(p));
        }
        let mut j = 0;
        while j < width {
            let count = (width - j).min(V::LANES);
            let whole = count == V::LANES;
            let mut sum = V::splat(V::Element::default());
            for p in 0..N {
                let from = a.offset(p as isize * step).add(j);
                let a = if whole { S::load(from) } else { S::load_partial(from, count) };
                sum = a.mul_add(factors[p], sum);
            }
            let y = y.add(j);
            if whole {
                V::load(y).add(sum).store(y)
            } else {
                V::load_partial(y, count).add(sum).store_partial(y, count)
            }
            j += count;
        }
    }
}

/// Scales the sums of the columns from `first` on, and adds the bias.
///
/// # Safety
///
/// The bias has a number for each of them, or for the one row.
unsafe fn finish<S: Kernels>(sums: &mut [S::Sum], alpha: Option<S::Sum>, bias: Bias<S>, first: usize) {
    if let Some(alpha) = alpha {
        sums.iter_mut().for_each(|sum| *sum = S::mul(*sum, alpha));
    }
    for (j, sum) in sums.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *sum = match bias {
            Bias::None => return,
            Bias::Columns(bias) => S::add(*sum, unsafe { *bias.add(first + j) }.widened()),
            Bias::Rows(bias) => S::add(*sum, unsafe { *bias }.widened()),
        };
    }
}

/// Columns of a product with a vector that are finished before the next, in a buffer on the stack.
const COLUMNS: usize = 2048;

/// Elements of the matrix that are worth a thread, of a product with a vector.
const GRAIN: usize = 64 << 10;

/// A product whose left operand is one row.
///
/// # Safety
///
/// As for [`super::gemm`]; [`Plan::is_vector`].
pub(super) unsafe fn run<S: Kernels>(plan: &Plan<'_, S>) {
    // SAFETY: the vector is in the operand; the scratch memory has its size.
    unsafe {
        if S::SUMS_ITSELF && plan.a.column == 1 {
            return run_columns(plan, plan.a.ptr.cast());
        }
        scratch::with(plan.k * size_of::<S::Sum>(), |x| {
            let x = x.cast::<S::Sum>();
            (0..plan.k).for_each(|p| *x.add(p) = (*plan.a.ptr.offset(p as isize * plan.a.column)).widened());
            run_columns(plan, x);
        });
    }
}

/// # Safety
///
/// As for [`run`]; `x` is the left operand, widened.
unsafe fn run_columns<S: Kernels>(plan: &Plan<'_, S>, x: *const S::Sum) {
    let grain = GRAIN.div_ceil(plan.k.max(1)).next_multiple_of(64);
    let shared = Shared((*plan, x));
    pool::parallel_for(plan.n, grain, &|range: Range<usize>| {
        let (plan, x) = { &shared }.0;
        let mut sums = [const { MaybeUninit::<S::Sum>::uninit() }; COLUMNS];
        for first in range.clone().step_by(COLUMNS) {
            let count = COLUMNS.min(range.end - first);
            let y = sums.as_mut_ptr().cast::<S::Sum>();
            // SAFETY: the columns are in the operands, and no other range has them; the inner loops write `count`
            // sums.
            unsafe {
                let from = plan.b.ptr.offset(first as isize * plan.b.column);
                if plan.b.row == 1 {
                    (plan.table.dot_lines)(from, plan.b.column, x, y, count, plan.k);
                } else {
                    (plan.table.sum_steps)(from, plan.b.row, x, y, count, plan.k);
                }
                finish(std::slice::from_raw_parts_mut(y, count), plan.alpha, plan.bias, first);
                plan.store_row(y, plan.c.ptr.offset(first as isize * plan.c.column), count);
            }
        }
    });
}
