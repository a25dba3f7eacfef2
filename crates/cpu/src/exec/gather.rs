//! Raw elements between strided memory and adjacent ones, by their size alone.

use super::iterate::{Cursor, Space};

/// Elements by size; what they mean does not matter to a copy.
macro_rules! by_size {
    ($size:expr, $t:ident => $body:expr) => {
        match $size {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            _ => {
                type $t = [u64; 2];
                $body
            }
        }
    };
}
pub(crate) use by_size;

/// Reads `n` elements that are `stride` bytes apart.
///
/// # Safety
/// They are readable, and `to` is writable for `n` elements of `size` bytes.
pub unsafe fn read_row(to: *mut u8, from: *const u8, stride: isize, size: usize, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        if stride == size as isize {
            return std::ptr::copy_nonoverlapping(from, to, n * size);
        }
        by_size!(size, T => {
            let to = to.cast::<T>();
            if stride == 0 {
                let x = *from.cast::<T>();
                return std::slice::from_raw_parts_mut(to, n).fill(x);
            }
            for i in 0..n {
                *to.add(i) = *from.offset(i as isize * stride).cast::<T>();
            }
        });
    }
}

/// Writes `n` elements `stride` bytes apart.
///
/// # Safety
/// As for [`read_row`], the other way.
pub unsafe fn write_row(to: *mut u8, from: *const u8, stride: isize, size: usize, n: usize) {
    // SAFETY: the caller's.
    unsafe {
        if stride == size as isize {
            return std::ptr::copy_nonoverlapping(from, to, n * size);
        }
        by_size!(size, T => {
            let from = from.cast::<T>();
            for i in 0..n {
                *to.offset(i as isize * stride).cast::<T>() = *from.add(i);
            }
        });
    }
}

/// Calls `f` on each row (or part of one) of operand `k` from a place on: bytes from the operand's first element,
/// elements before it, number of elements.
#[inline(always)]
fn each_row(space: &Space, k: usize, from: &Cursor, n: usize, mut f: impl FnMut(isize, usize, usize)) {
    let (mut cursor, mut done) = (from.clone(), 0);
    let inner = space.inner();
    while done < n {
        let offset = cursor.offset(space, k);
        let rows = cursor.rows(space).min((n - done) / inner);
        if rows > 0 {
            let step = space.strides[k][space.sizes.len() - 2];
            (0..rows).for_each(|r| f(offset + r as isize * step, done + r * inner, inner));
            cursor.skip_rows(space, rows);
            done += rows * inner;
        } else {
            let run = cursor.left(space).min(n - done);
            f(offset, done, run);
            cursor.advance(space, run);
            done += run;
        }
    }
}

/// Reads `n` elements of operand `k` from a place on, row after row.
///
/// # Safety
/// `base` is the operand's first element, all its elements are readable, and `to` is writable for `n` of `size` bytes.
pub unsafe fn gather(to: *mut u8, base: *const u8, space: &Space, k: usize, from: &Cursor, size: usize, n: usize) {
    let stride = space.inner_stride(k);
    // SAFETY: the rows are inside the space.
    each_row(space, k, from, n, |offset, done, run| unsafe { read_row(to.add(done * size), base.offset(offset), stride, size, run) });
}

/// Writes `n` elements of operand `k` from a place on, row after row.
///
/// # Safety
/// As for [`gather`], the other way.
pub unsafe fn scatter(base: *mut u8, from: *const u8, space: &Space, k: usize, at: &Cursor, size: usize, n: usize) {
    let stride = space.inner_stride(k);
    // SAFETY: the rows are inside the space.
    each_row(space, k, at, n, |offset, done, run| unsafe { write_row(base.offset(offset), from.add(done * size), stride, size, run) });
}
