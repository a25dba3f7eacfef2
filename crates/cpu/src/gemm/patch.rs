//! Packing of windows of tensors: panels whose lines are put together from pieces of memory, with zeros between them.
//!
//! Inlined into the functions of `table.rs`; see `kernel.rs`.
#![allow(clippy::needless_range_loop)]

use super::vector::Vector;

/// The most lines of a panel: two vectors of 64 bytes of single precision.
pub(crate) const MAX_LINES: usize = 32;

/// Adjacent lanes of a vector that are read from memory with one step.
#[derive(Clone, Copy)]
pub(crate) struct Piece<E> {
    /// Where lane 0 of the vector would be.
    pub(crate) ptr: *const E,
    /// Which vector of the line.
    pub(crate) vector: usize,
    /// The first lane.
    pub(crate) first: usize,
    /// The lane after the last.
    pub(crate) last: usize,
}

impl<E> Piece<E> {
    /// No lanes.
    pub(crate) const NONE: Piece<E> = Piece { ptr: std::ptr::null(), vector: 0, first: 0, last: 0 };
}

/// A line of a square: which pieces it is made of, and how many elements behind them it lies.
#[derive(Clone, Copy, Default)]
pub(crate) struct Line {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) offset: isize,
}

/// Writes `count` rows of `width` numbers, filled up to whole vectors: row `i` holds the pieces moved by `i * step`,
/// and zeros between them. The pieces are in order of their vectors.
///
/// # Safety
///
/// The pieces are readable, at every one of those places; `to` has room for the rows, `to_row` numbers apart; see
/// [`Vector`].
#[inline(always)]
pub(super) unsafe fn merge_rows<V: Vector>(
    pieces: &[Piece<V::Element>],
    lane_step: isize,
    step: isize,
    count: usize,
    width: usize,
    to: *mut V::Element,
    to_row: usize,
) {
    let mut from = 0;
    // SAFETY: by the caller's promise.
    unsafe {
        for vector in 0..width.div_ceil(V::LANES) {
            let mut end = from;
            while end < pieces.len() && pieces[end].vector == vector {
                end += 1;
            }
            let to = to.add(vector * V::LANES);
            let own = &pieces[from..end];
            match own {
                [] => {
                    for i in 0..count {
                        V::splat(V::Element::default()).store(to.add(i * to_row));
                    }
                }
                [one] if lane_step == 1 && one.last - one.first == V::LANES => {
                    for i in 0..count {
                        V::load(one.ptr.wrapping_offset(i as isize * step)).store(to.add(i * to_row));
                    }
                }
                [one] if lane_step == 1 => {
                    let mask = V::mask(one.first, one.last);
                    for i in 0..count {
                        let from = one.ptr.wrapping_offset(i as isize * step);
                        V::splat(V::Element::default()).merge(from, mask).store(to.add(i * to_row));
                    }
                }
                _ => merge_column::<V>(own, lane_step, step, count, to, to_row),
            }
            from = end;
        }
    }
}

/// One vector of all rows.
///
/// # Safety
///
/// As for [`merge_rows`].
#[inline(always)]
unsafe fn merge_column<V: Vector>(
    pieces: &[Piece<V::Element>],
    lane_step: isize,
    step: isize,
    count: usize,
    to: *mut V::Element,
    to_row: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut masks = [V::mask(0, 0); 16];
        for i in 0..pieces.len() {
            masks[i] = V::mask(pieces[i].first, pieces[i].last);
        }
        for i in 0..count {
            let mut x = V::splat(V::Element::default());
            for p in 0..pieces.len() {
                let from = pieces[p].ptr.wrapping_offset(i as isize * step);
                x = if lane_step == 1 { x.merge(from, masks[p]) } else { x.merge_strided(from, lane_step, masks[p]) };
            }
            x.store(to.add(i * to_row));
        }
    }
}

/// Writes the columns of a square as rows: the lanes of a line, put together from its pieces, become numbers of `steps`
/// rows. Lines up to a whole vector are zeros.
///
/// # Safety
///
/// As for [`merge_rows`]; `lines` are at most a vector of them, and `steps` at most its lanes.
#[inline(always)]
pub(super) unsafe fn merge_square<V: Vector>(
    lines: &[Line],
    pieces: &[Piece<V::Element>],
    lane_step: isize,
    steps: usize,
    to: *mut V::Element,
    to_row: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut square = [V::splat(V::Element::default()); 16];
        for i in 0..V::LANES {
            let Some(line) = lines.get(i) else { break };
            let mut x = V::splat(V::Element::default());
            for p in line.first..line.last {
                let piece = &pieces[p];
                let from = piece.ptr.wrapping_offset(line.offset);
                if lane_step != 1 {
                    x = x.merge_strided(from, lane_step, V::mask(piece.first, piece.last));
                } else if piece.last - piece.first == V::LANES {
                    x = V::load(from);
                } else {
                    x = x.merge(from, V::mask(piece.first, piece.last));
                }
            }
            square[i] = x;
        }
        V::transpose(&mut square);
        for p in 0..V::LANES {
            if p < steps {
                square[p].store(to.add(p * to_row));
            }
        }
    }
}

/// As `kernel::pack` of lines whose steps are adjacent, each of which begins where its pointer says; null is zeros.
///
/// # Safety
///
/// Each line has `k` readable numbers; `to` has room for `k` rows of so many lines filled up to vectors, `to_row`
/// numbers apart; see [`Vector`].
#[inline(always)]
pub(super) unsafe fn pack_pointers<V: Vector>(lines: &[*const V::Element], k: usize, to: *mut V::Element, to_row: usize) {
    for first in (0..lines.len()).step_by(V::LANES) {
        let own = &lines[first..lines.len().min(first + V::LANES)];
        for p in (0..k).step_by(V::LANES) {
            let steps = (k - p).min(V::LANES);
            // SAFETY: by the caller's promise.
            unsafe {
                let mut square = [V::splat(V::Element::default()); 16];
                for i in 0..V::LANES {
                    let Some(&line) = own.get(i) else { break };
                    if !line.is_null() {
                        let from = line.add(p);
                        square[i] = if steps == V::LANES { V::load(from) } else { V::load_partial(from, steps) };
                    }
                }
                V::transpose(&mut square);
                for i in 0..V::LANES {
                    if i < steps {
                        square[i].store(to.add((p + i) * to_row + first));
                    }
                }
            }
        }
    }
}
