//! Products of a matrix and a vector, at the speed of memory: the inner loops.
//!
//! Both read the matrix once, in the order in which it lies, and nothing is packed.
#![allow(clippy::needless_range_loop)] // See `kernel.rs`.

use super::Bias;
use super::table::Kernels;
use super::vector::{Packed, Vector};

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
        std::slice::from_raw_parts_mut(y, width).fill(V::Element::default());
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
pub(super) unsafe fn finish<S: Kernels>(sums: &mut [S::Sum], alpha: Option<S::Sum>, bias: Bias<S>, first: usize) {
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
