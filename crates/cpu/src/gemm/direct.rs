//! Rows and channels weighed by single numbers: convolutions of one channel each, which are no matrix products.
//!
//! Inlined into the functions of `table.rs`; see `kernel.rs`.
#![allow(clippy::needless_range_loop)]

use super::vector::Vector;

/// Vectors that are summed up at a time.
const WIDE: usize = 4;

/// Vectors that are summed up at a time for several lines.
const PAIR: usize = 2;

/// Lines of which [`weigh_lines`] computes at most so many.
pub(crate) const LINES: usize = 8;

/// A row of a window's element, and its weight.
#[derive(Clone, Copy)]
pub(crate) struct Weighed<E> {
    /// Where lane 0 of the row would be.
    pub(crate) ptr: *const E,
    /// The first lane that there is.
    pub(crate) first: usize,
    /// The lane after the last.
    pub(crate) last: usize,
    /// What the row counts for.
    pub(crate) weight: E,
    /// Which sum it goes to.
    pub(crate) sum: usize,
}

/// The lanes of a row from `at` on, as far as they are there; others are zeros.
///
/// # Safety
///
/// See [`weigh_row`].
#[inline(always)]
unsafe fn lanes<V: Vector>(row: &Weighed<V::Element>, at: usize, step: isize) -> V {
    // SAFETY: by the caller's promise.
    unsafe {
        let from = row.ptr.wrapping_offset(at as isize * step);
        let zero = V::splat(V::Element::default());
        if step == 1 && row.first <= at && at + V::LANES <= row.last {
            return V::load(from);
        }
        let (first, last) = (row.first.clamp(at, at + V::LANES) - at, row.last.clamp(at, at + V::LANES) - at);
        if first >= last {
            return zero;
        }
        let mask = V::mask(first, last);
        if step == 1 { zero.merge(from, mask) } else { zero.merge_strided(from, step, mask) }
    }
}

/// Writes `width` numbers: `start` and the sum of the rows, each times its weight.
///
/// # Safety
///
/// The rows' lanes, `step` apart, are readable; `to` has room for `width` numbers; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn weigh_row<V: Vector>(rows: &[Weighed<V::Element>], step: isize, start: V::Element, width: usize, to: *mut V::Element) {
    // SAFETY: by the caller's promise.
    unsafe {
        for at in (0..width).step_by(WIDE * V::LANES) {
            let vectors = (width - at).div_ceil(V::LANES).min(WIDE);
            let mut sums = [V::splat(start); WIDE];
            for row in rows {
                let weight = V::splat(row.weight);
                if vectors == WIDE {
                    for j in 0..WIDE {
                        sums[j] = lanes::<V>(row, at + j * V::LANES, step).mul_add(weight, sums[j]);
                    }
                } else {
                    for j in 0..vectors {
                        sums[j] = lanes::<V>(row, at + j * V::LANES, step).mul_add(weight, sums[j]);
                    }
                }
            }
            for j in 0..vectors {
                let (to, left) = (to.add(at + j * V::LANES), width - at - j * V::LANES);
                if left >= V::LANES { sums[j].store(to) } else { sums[j].store_partial(to, left) }
            }
        }
    }
}

/// As [`weigh_row`] for up to [`LINES`] sets of weights, whose sums are written `to_line` apart. The weights of row `r` are
/// at `r.sum * LINES`.
///
/// # Safety
///
/// As for [`weigh_row`], for all sets; `starts` has a number for each.
#[inline(always)]
pub(super) unsafe fn weigh_lines<V: Vector>(
    rows: &[Weighed<V::Element>],
    step: isize,
    [weights, starts]: [*const V::Element; 2],
    lines: usize,
    width: usize,
    to: *mut V::Element,
    to_line: isize,
) {
    // Sums of so many lines stay in registers.
    let most = if size_of::<V>() >= 64 { LINES } else { LINES / 2 };
    // SAFETY: by the caller's promise.
    unsafe {
        for first in (0..lines).step_by(most) {
            let (own, lines) = ([weights.add(first), starts.add(first)], (lines - first).min(most));
            let to = to.wrapping_offset(first as isize * to_line);
            for at in (0..width).step_by(PAIR * V::LANES) {
                match (lines, width - at > V::LANES) {
                    (7.., true) => lines_at::<V, 8, 2>(rows, step, own, lines, (at, width), to, to_line),
                    (7.., false) => lines_at::<V, 8, 1>(rows, step, own, lines, (at, width), to, to_line),
                    (5.., true) => lines_at::<V, 6, 2>(rows, step, own, lines, (at, width), to, to_line),
                    (5.., false) => lines_at::<V, 6, 1>(rows, step, own, lines, (at, width), to, to_line),
                    (3.., true) => lines_at::<V, 4, 2>(rows, step, own, lines, (at, width), to, to_line),
                    (3.., false) => lines_at::<V, 4, 1>(rows, step, own, lines, (at, width), to, to_line),
                    (_, true) => lines_at::<V, 2, 2>(rows, step, own, lines, (at, width), to, to_line),
                    (_, false) => lines_at::<V, 2, 1>(rows, step, own, lines, (at, width), to, to_line),
                }
            }
        }
    }
}

/// A few vectors of [`weigh_lines`] of up to `N` lines.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn lines_at<V: Vector, const N: usize, const VECTORS: usize>(
    rows: &[Weighed<V::Element>],
    step: isize,
    [weights, starts]: [*const V::Element; 2],
    lines: usize,
    (at, width): (usize, usize),
    to: *mut V::Element,
    to_line: isize,
) {
    // SAFETY: by the caller's promise; there are weights of `N` lines, though not all may be asked for.
    unsafe {
        let mut sums = [[V::splat(V::Element::default()); VECTORS]; N];
        for i in 0..N {
            if i < lines {
                sums[i] = [V::splat(*starts.add(i)); VECTORS];
            }
        }
        for row in rows {
            let mut x = [V::splat(V::Element::default()); VECTORS];
            for j in 0..VECTORS {
                x[j] = lanes::<V>(row, at + j * V::LANES, step);
            }
            let weights = weights.add(row.sum * LINES);
            for i in 0..N {
                let weight = V::splat(*weights.add(i));
                for j in 0..VECTORS {
                    sums[i][j] = x[j].mul_add(weight, sums[i][j]);
                }
            }
        }
        for i in 0..N {
            if i < lines {
                for j in 0..VECTORS {
                    let first = at + j * V::LANES;
                    let to = to.wrapping_offset(i as isize * to_line).wrapping_add(first);
                    if width - first >= V::LANES { sums[i][j].store(to) } else { sums[i][j].store_partial(to, width - first) }
                }
            }
        }
    }
}

/// Adds the products of `width` numbers and each row to the lanes of the row's sum.
///
/// # Safety
///
/// As for [`weigh_row`]; `sums` has as many vectors as the rows say.
#[inline(always)]
pub(super) unsafe fn dot_row<V: Vector>(
    y: *const V::Element,
    width: usize,
    rows: &[Weighed<V::Element>],
    step: isize,
    sums: *mut V::Element,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        for at in (0..width).step_by(WIDE * V::LANES) {
            let vectors = (width - at).div_ceil(V::LANES).min(WIDE);
            let mut own = [V::splat(V::Element::default()); WIDE];
            for j in 0..vectors {
                let from = at + j * V::LANES;
                own[j] = V::load_partial(y.add(from), (width - from).min(V::LANES));
            }
            for row in rows {
                let to = sums.add(row.sum * V::LANES);
                let mut sum = V::load(to);
                for j in 0..vectors {
                    sum = lanes::<V>(row, at + j * V::LANES, step).mul_add(own[j], sum);
                }
                sum.store(to);
            }
        }
    }
}

/// The sum of the lanes of each of `count` vectors.
///
/// # Safety
///
/// `from` has so many vectors, `to` room for as many numbers; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn fold_lanes<V: Vector>(from: *const V::Element, count: usize, to: *mut V::Element) {
    for i in 0..count {
        // SAFETY: by the caller's promise.
        unsafe { *to.add(i) = V::load(from.add(i * V::LANES)).sum() }
    }
}

/// Writes `count` numbers: those at `start` (zeros where it is null) and the sum of products of pairs of rows.
///
/// # Safety
///
/// All rows have `count` readable numbers, `to` room for them; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn weigh_channels<V: Vector>(
    rows: &[[*const V::Element; 2]],
    start: *const V::Element,
    count: usize,
    to: *mut V::Element,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let whole = count / V::LANES * V::LANES;
        for at in (0..whole).step_by(V::LANES) {
            let mut sum = if start.is_null() { V::splat(V::Element::default()) } else { V::load(start.add(at)) };
            for [a, b] in rows {
                sum = V::load(a.add(at)).mul_add(V::load(b.add(at)), sum);
            }
            sum.store(to.add(at));
        }
        let rest = count - whole;
        if rest > 0 {
            let zero = V::splat(V::Element::default());
            let mut sum = if start.is_null() { zero } else { V::load_partial(start.add(whole), rest) };
            for [a, b] in rows {
                sum = V::load_partial(a.add(whole), rest).mul_add(V::load_partial(b.add(whole), rest), sum);
            }
            sum.store_partial(to.add(whole), rest);
        }
    }
}
