//! The inner loops, generic over the vector: one tile of the product, packing, storing.
//!
//! All functions are inlined into those of `table.rs`, which are compiled for an instruction set. The loops run
//! over indices: the closures of iterators would be compiled apart, without the instruction set.
#![allow(clippy::needless_range_loop)]

use super::vector::{Packed, Vector};

/// What happens to a tile on its way from the accumulators to memory.
pub(super) struct Finish<E> {
    /// Scales the new part of the sum; `None` for one.
    pub(super) alpha: Option<E>,
    /// Whether to add what is in memory.
    pub(super) accumulate: bool,
    /// A number to add to each column of the tile, or null.
    pub(super) column_bias: *const E,
    /// A number to add to each row of the tile, or null.
    pub(super) row_bias: *const E,
}

impl<E> Finish<E> {
    /// Whether there is nothing to do but to store or to add.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.alpha.is_none() && self.column_bias.is_null() && self.row_bias.is_null()
    }
}

/// One operand of a tile: a pointer with its strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Left<E> {
    pub(super) ptr: *const E,
    pub(super) row: isize,
    pub(super) column: isize,
}

/// Repeats a block for each row of a tile, with the row as a constant: the compiler would leave a loop of that
/// length a loop, and its accumulators in memory.
macro_rules! unroll {
    ($i:ident < $rows:ident $body:block) => {
        unroll!($i $rows $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    ($i:ident $rows:ident $body:block $($row:literal)*) => {$(
        const { assert!($rows <= 14) }
        if $row < $rows {
            const $i: usize = $row;
            $body
        }
    )*};
}

const CACHE_LINE: usize = 64;

/// How many steps ahead a tile asks for its operands.
const AHEAD: isize = 8;

/// How many steps ahead packing asks for its operand, where lines of a step are adjacent.
const PACK_AHEAD: isize = 16;

/// How many squares ahead packing asks for its operand, where steps are adjacent.
const SQUARES_AHEAD: usize = 4;

/// How many row pointers a tile advances; from each of them three rows are reached by the address alone.
const POINTERS: usize = 5;
const ROWS_PER_POINTER: usize = 3;

/// `c = finish(a @ b)` for a tile of `MR` rows and `columns` of up to `NV` vectors of columns, over `k` terms.
///
/// `b` holds whole rows of `NV` vectors, `b_row` elements apart. Each element of the tile is one chain of
/// multiply-adds in order of k, whatever the shape of the tile.
///
/// # Safety
///
/// The operands are readable and the tile writable in that extent; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const MR: usize, const NV: usize>(
    k: usize,
    a: Left<V::Element>,
    b: *const V::Element,
    b_row: isize,
    c: *mut V::Element,
    c_row: isize,
    columns: usize,
    finish: &Finish<V::Element>,
) {
    // SAFETY: reads `k` columns of `MR` rows of a and `k` rows of `NV` vectors of b, as promised. The pointers
    // move with wrapping arithmetic, since after the last step they may leave the operand.
    unsafe {
        // All rows of the tile within the first half of the steps, a row at a time: as many at once would keep
        // the operands waiting.
        let steps_per_row = (k / (2 * MR)).max(4);
        let (mut left, mut c_next) = (k, c);
        let zero = V::splat(V::Element::default());
        let mut sums = [[zero; NV]; MR];
        let mut rows = [a.ptr; POINTERS];
        for group in 0..POINTERS {
            rows[group] = a.ptr.wrapping_offset((ROWS_PER_POINTER * group) as isize * a.row);
        }
        let mut b = b;
        while left > 0 {
            let steps = steps_per_row.min(left);
            left -= steps;
            prefetch(c_next);
            prefetch(c_next.wrapping_add(columns - 1));
            c_next = c_next.wrapping_offset(c_row);
            for _ in 0..steps {
                let mut b_vectors = [zero; NV];
                for j in 0..NV {
                    if (j * V::LANES * size_of::<V::Element>()).is_multiple_of(CACHE_LINE) {
                        prefetch(b.wrapping_offset(AHEAD * b_row).wrapping_add(j * V::LANES));
                    }
                    b_vectors[j] = V::load(b.wrapping_add(j * V::LANES));
                }
                prefetch(rows[0].wrapping_offset(AHEAD * a.column));
                if MR * size_of::<V::Element>() > CACHE_LINE {
                    prefetch(rows[POINTERS - 2].wrapping_offset(AHEAD * a.column));
                }
                unroll!(I < MR {
                    let from = rows[I / ROWS_PER_POINTER];
                    let value = V::splat(*from.wrapping_offset((I % ROWS_PER_POINTER) as isize * a.row));
                    for j in 0..NV {
                        sums[I][j] = value.mul_add(b_vectors[j], sums[I][j]);
                    }
                });
                for group in 0..MR.div_ceil(ROWS_PER_POINTER) {
                    rows[group] = opaque(rows[group].wrapping_offset(a.column));
                }
                b = b.wrapping_offset(b_row);
            }
        }
        if columns == NV * V::LANES && finish.is_plain() {
            let keep = finish.accumulate;
            unroll!(I < MR {
                for j in 0..NV {
                    let c = c.wrapping_offset(I as isize * c_row).wrapping_add(j * V::LANES);
                    let sum = sums[I][j];
                    (if keep { V::load(c).add(sum) } else { sum }).store(c);
                }
            });
            return;
        }
        // Once for all rows: this part is seldom run, and would be long if it were repeated.
        let mut spilled = [[zero; NV]; MR];
        unroll!(I < MR {
            spilled[I] = sums[I];
        });
        for i in 0..MR {
            finish_row::<V, NV>(&spilled[i], c.wrapping_offset(i as isize * c_row), columns, i, finish);
        }
    }
}

/// Hides from the compiler how a pointer came about; else it would keep one pointer a row, more than there are
/// registers.
#[inline(always)]
fn opaque<T>(pointer: *const T) -> *const T {
    #[cfg(target_arch = "x86_64")]
    let pointer = {
        let mut pointer = pointer;
        // SAFETY: no instruction at all; the pointer is not followed.
        #[allow(clippy::pointers_in_nomem_asm_block)]
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) pointer, options(nomem, nostack, preserves_flags, pure))
        };
        pointer
    };
    pointer
}

/// # Safety
///
/// As for [`tile`], of which this is the end of one row.
#[inline(always)]
unsafe fn finish_row<V: Vector, const NV: usize>(
    sums: &[V; NV],
    c: *mut V::Element,
    columns: usize,
    row: usize,
    finish: &Finish<V::Element>,
) {
    for j in 0..NV {
        let count = (columns - j * V::LANES).min(V::LANES);
        // SAFETY: only the vector's first `count` columns are in the tile and in the bias.
        unsafe {
            let c = c.wrapping_add(j * V::LANES);
            let mut sum = sums[j];
            if let Some(alpha) = finish.alpha {
                sum = sum.mul(V::splat(alpha));
            }
            if finish.accumulate {
                sum = V::load_partial(c, count).add(sum);
            }
            if !finish.column_bias.is_null() {
                sum = sum.add(V::load_partial(finish.column_bias.wrapping_add(j * V::LANES), count));
            }
            if !finish.row_bias.is_null() {
                sum = sum.add(V::splat(*finish.row_bias.add(row)));
            }
            if count == V::LANES { sum.store(c) } else { sum.store_partial(c, count) }
        }
    }
}

/// Asks for the cache line of an address, which need not be valid.
#[inline(always)]
fn prefetch<E>(address: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and it never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// As [`prefetch`], into the second-level cache.
#[inline(always)]
pub(super) fn prefetch_far<E>(address: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch`.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Copies a panel of `width` lines and `k` steps to `to`, as `k` rows of `to_row` numbers each: line `i` at step
/// `p` comes from `from[i * line + p * step]`. A row is filled up with zeros to whole vectors.
///
/// # Safety
///
/// The panel is readable; `to` has room for `k` rows of `width` rounded up to vectors, at most `to_row`; see
/// [`Vector`].
#[inline(always)]
pub(super) unsafe fn pack<V: Vector, S: Packed<V>>(
    from: *const S,
    line: isize,
    step: isize,
    width: usize,
    k: usize,
    to: *mut V::Element,
    to_row: usize,
) {
    // SAFETY: all accesses stay in the extents that the caller promises.
    unsafe {
        if line == 1 {
            return pack_steps::<V, S>(from, step, width, k, to, to_row);
        }
        let blocks = if step == 1 { k / V::LANES * V::LANES } else { 0 };
        if step == 1 {
            for p in (0..blocks).step_by(V::LANES) {
                pack_square::<V, S>(from.add(p), line, width, V::LANES, to.add(p * to_row), to_row);
            }
            if k - blocks >= V::LANES / 4 {
                return pack_square::<V, S>(from.add(blocks), line, width, k - blocks, to.add(blocks * to_row), to_row);
            }
        }
        let padded = width.next_multiple_of(V::LANES);
        for p in blocks..k {
            let row = to.add(p * to_row);
            for i in 0..width {
                *row.add(i) = (*from.offset(i as isize * line + p as isize * step)).widen();
            }
            for i in width..padded {
                *row.add(i) = V::Element::default();
            }
        }
    }
}

/// [`pack`] where the lines of a step are adjacent.
///
/// # Safety
///
/// As for [`pack`].
#[inline(always)]
unsafe fn pack_steps<V: Vector, S: Packed<V>>(from: *const S, step: isize, width: usize, k: usize, to: *mut V::Element, to_row: usize) {
    let (whole, rest) = (width / V::LANES, width % V::LANES);
    // SAFETY: as promised.
    unsafe {
        for p in 0..k {
            let (from, to) = (from.offset(p as isize * step), to.add(p * to_row));
            let later = from.wrapping_offset(PACK_AHEAD * step);
            for at in (0..width * size_of::<S>()).step_by(CACHE_LINE) {
                prefetch(later.wrapping_byte_add(at));
            }
            for j in 0..whole {
                S::load(from.add(j * V::LANES)).store(to.add(j * V::LANES));
            }
            if rest > 0 {
                S::load_partial(from.add(whole * V::LANES), rest).store(to.add(whole * V::LANES));
            }
        }
    }
}

/// [`pack`] of `steps` (at most a vector of) adjacent steps of each line, by transposing squares.
///
/// # Safety
///
/// As for [`pack`].
#[inline(always)]
unsafe fn pack_square<V: Vector, S: Packed<V>>(
    from: *const S,
    line: isize,
    width: usize,
    steps: usize,
    to: *mut V::Element,
    to_row: usize,
) {
    for first in (0..width).step_by(V::LANES) {
        // SAFETY: as promised; only lines below `width` and steps below `steps` are read.
        unsafe {
            let mut square = [V::splat(V::Element::default()); 16];
            let lines = (width - first).min(V::LANES);
            let from = from.offset(first as isize * line);
            let whole = steps == V::LANES && lines == V::LANES;
            for i in 0..V::LANES {
                let from = from.wrapping_offset(i as isize * line);
                prefetch(from.wrapping_add(SQUARES_AHEAD * V::LANES));
                if whole {
                    square[i] = S::load(from);
                } else if i < lines {
                    square[i] = S::load_partial(from, steps);
                }
            }
            V::transpose(&mut square);
            for p in 0..V::LANES {
                if whole || p < steps {
                    square[p].store(to.wrapping_add(p * to_row + first));
                }
            }
        }
    }
}

/// Rounds a row of `count` sums to the type of the result, `c = from` or `c = c + from`.
///
/// # Safety
///
/// Both rows have `count` numbers; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn store_row<V: Vector, S: Packed<V>>(from: *const V::Element, c: *mut S, count: usize, accumulate: bool) {
    for j in (0..count).step_by(V::LANES) {
        let lanes = (count - j).min(V::LANES);
        // SAFETY: `lanes` numbers are left in both rows.
        unsafe {
            let mut sum = V::load_partial(from.add(j), lanes);
            if accumulate {
                sum = S::load_partial(c.add(j), lanes).add(sum);
            }
            S::store_partial(sum, c.add(j), lanes);
        }
    }
}
