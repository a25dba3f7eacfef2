//! Blocks of two dimensions, for operands of which some run along the one and some along the other (transposes).

use super::gather::{by_size, read_row, write_row};
use super::iterate::Space;
use smallvec::SmallVec;

/// How a space is cut into blocks: of its last dimension and another one.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The other dimension.
    across: usize,
    /// Elements of a full block, in it and in the last one.
    size: [usize; 2],
    /// How many blocks they make.
    counts: [usize; 2],
}

/// Where a block is.
pub struct Block {
    /// Bytes from each operand's first element.
    pub shifts: SmallVec<[isize; 4]>,
    /// Elements in the other dimension and in the last one.
    pub size: [usize; 2],
}

impl Blocks {
    /// The cut into blocks of up to `elements`, where an operand runs along another dimension than the last; none
    /// where all run along the last one.
    pub fn of(space: &Space, sizes: impl Iterator<Item = usize>, elements: usize) -> Option<Blocks> {
        let last = space.sizes.len() - 1;
        let across = sizes.enumerate().find_map(|(k, size)| {
            let strides = &space.strides[k];
            let along = strides[last] == size as isize || strides[last] == 0;
            if along { None } else { (0..last).find(|&d| strides[d] == size as isize) }
        })?;
        let (rows, inner) = (space.sizes[across], space.sizes[last]);
        let side = 1 << (elements.ilog2() / 2);
        let wide = inner.min(side);
        let high = rows.min(elements / wide);
        let wide = inner.min(elements / high);
        Some(Blocks { across, size: [high, wide], counts: [rows.div_ceil(high), inner.div_ceil(wide)] })
    }

    /// How many there are.
    pub fn count(&self, space: &Space) -> usize {
        let last = space.sizes.len() - 1;
        space.numel / (space.sizes[self.across] * space.sizes[last]) * self.counts[0] * self.counts[1]
    }

    /// Elements of a full block.
    pub fn elements(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Block number `i`: the last dimension's blocks come first, then the other's.
    pub fn at(&self, space: &Space, i: usize) -> Block {
        let last = space.sizes.len() - 1;
        let first = [i / self.counts[1] % self.counts[0] * self.size[0], i % self.counts[1] * self.size[1]];
        let mut rest = i / (self.counts[0] * self.counts[1]);
        let mut shifts: SmallVec<[isize; 4]> =
            space.strides.iter().map(|s| first[0] as isize * s[self.across] + first[1] as isize * s[last]).collect();
        for d in (0..last).rev().filter(|&d| d != self.across) {
            let index = (rest % space.sizes[d]) as isize;
            rest /= space.sizes[d];
            shifts.iter_mut().zip(&space.strides).for_each(|(shift, s)| *shift += index * s[d]);
        }
        let size = [self.size[0].min(space.sizes[self.across] - first[0]), self.size[1].min(space.sizes[last] - first[1])];
        Block { shifts, size }
    }

    /// Strides of operand `k` in the other dimension and in the last one.
    pub fn strides(&self, space: &Space, k: usize) -> [isize; 2] {
        [space.strides[k][self.across], space.strides[k][space.sizes.len() - 1]]
    }
}

/// Reads a block: the last dimension becomes the fastest, `step` bytes from row to row.
///
/// # Safety
/// Its elements are readable, and `to` is writable for as many.
pub unsafe fn read(to: *mut u8, step: isize, from: *const u8, strides: [isize; 2], size: usize, [rows, columns]: [usize; 2]) {
    // SAFETY: the caller's.
    unsafe { (0..rows as isize).for_each(|i| read_row(to.offset(i * step), from.offset(i * strides[0]), strides[1], size, columns)) }
}

/// Writes a block, as [`read`] reads it.
///
/// # Safety
/// As for [`read`], the other way.
pub unsafe fn write(to: *mut u8, from: *const u8, strides: [isize; 2], size: usize, [rows, columns]: [usize; 2]) {
    // SAFETY: the caller's.
    unsafe {
        if strides[0] == size as isize && strides[1] != size as isize {
            by_size!(size, T => {
                let from = from.cast::<T>();
                for j in 0..columns {
                    let line = std::slice::from_raw_parts_mut(to.offset(j as isize * strides[1]).cast::<T>(), rows);
                    for (i, x) in line.iter_mut().enumerate() {
                        *x = *from.add(i * columns + j);
                    }
                }
            });
        } else {
            (0..rows).for_each(|i| write_row(to.offset(i as isize * strides[0]), from.add(i * columns * size), strides[1], size, columns));
        }
    }
}
