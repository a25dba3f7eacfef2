//! Where a tensor is not zero.

use crate::pool::parallel_for;
use flambeau_base::{DType, Result};
use flambeau_engine::backend::Operand;
use smallvec::SmallVec;

/// Elements in a block; counts of blocks say where each block's places go.
const BLOCK: usize = 16 * 1024;
/// Places are gathered here before they are written out, so that no block writes past its own.
const CHUNK: usize = 256;

/// What all blocks share.
struct Field<'a> {
    sizes: &'a [usize],
    /// All dimensions but the last, put together where their steps allow.
    outer: SmallVec<[(usize, isize); 6]>,
    inner: (usize, isize),
    ptr: *const u8,
}

// SAFETY: the memory is only read.
unsafe impl Sync for Field<'_> {}

#[derive(Clone, Copy)]
struct Places {
    ptr: *mut i64,
    total: usize,
    linear: bool,
}

// SAFETY: blocks write different places.
unsafe impl Sync for Places {}

/// An element as bits, of which some decide whether it is zero.
trait Bits: Copy {
    fn masked(self, mask: u128) -> bool;
}

macro_rules! bits {
    ($($t:ty)*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn masked(self, mask: u128) -> bool {
                self & mask as $t != 0
            }
        }
    )*};
}
bits!(u8 u16 u32 u64 u128);

/// See `Backend::nonzero`.
///
/// # Safety
/// See NOTE [kernel contract] in `backend`; `make` gives memory for so many indices.
pub(crate) unsafe fn nonzero(
    sizes: &[usize],
    tensor: Operand,
    linear: bool,
    make: &mut dyn FnMut(usize) -> Result<*mut i64>,
) -> Result<()> {
    let mut outer: SmallVec<[(usize, isize); 6]> = sizes.iter().copied().zip(tensor.strides.iter().copied()).collect();
    let mut inner = outer.pop().unwrap_or((1, 1));
    if linear {
        while let Some(&(n, s)) = outer.last()
            && s == inner.1 * inner.0 as isize
        {
            inner = (n * inner.0, inner.1);
            outer.pop();
        }
    }
    let field = Field { sizes, outer, inner, ptr: tensor.ptr };
    let mask = zero_mask(tensor.dtype);
    // SAFETY: the caller's.
    unsafe {
        match tensor.dtype.size() {
            1 => find::<u8>(&field, mask, linear, make),
            2 => find::<u16>(&field, mask, linear, make),
            4 => find::<u32>(&field, mask, linear, make),
            8 => find::<u64>(&field, mask, linear, make),
            _ => find::<u128>(&field, mask, linear, make),
        }
    }
}

/// All bits but the signs of floating point numbers: minus zero is zero.
fn zero_mask(dtype: DType) -> u128 {
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 => 0x7f,
        DType::F16 | DType::BF16 => 0x7fff,
        DType::F32 => 0x7fff_ffff,
        DType::F64 => 0x7fff_ffff_ffff_ffff,
        DType::C64 => 0x7fff_ffff_7fff_ffff,
        DType::C128 => 0x7fff_ffff_ffff_ffff_7fff_ffff_ffff_ffff,
        _ => u128::MAX,
    }
}

unsafe fn find<T: Bits>(field: &Field, mask: u128, linear: bool, make: &mut dyn FnMut(usize) -> Result<*mut i64>) -> Result<()> {
    let total: usize = field.outer.iter().map(|d| d.0).product::<usize>() * field.inner.0;
    let blocks = total.div_ceil(BLOCK);
    let mut counts = vec![0usize; blocks];
    let slots = Slots(counts.as_mut_ptr());
    parallel_for(blocks, 1, &|range| {
        for b in range {
            let mut count = 0;
            // SAFETY: the caller's.
            unsafe { segments(field, b, total, |ptr: *const T, step, n, _, _| count += count_in(ptr, step, n, mask)) };
            // SAFETY: each block has a slot of its own.
            unsafe { *slots.get(b) = count };
        }
    });
    let mut sum = 0;
    for c in &mut counts {
        sum += std::mem::replace(c, sum);
    }
    let places = Places { ptr: make(sum)?, total: sum, linear };
    let counts = &counts[..];
    parallel_for(blocks, 1, &|range| {
        for b in range {
            let mut to = counts[b];
            // SAFETY: the caller's; places from `counts[b]` on are this block's, as many as it has counted. Where the
            // tensor was changed meanwhile, `put` stops at the end.
            unsafe {
                segments(field, b, total, |ptr: *const T, step, n, row, first| to = put(field, places, to, ptr, step, n, row, first, mask))
            };
        }
    });
    Ok(())
}

/// Memory that each block writes one element of.
#[derive(Clone, Copy)]
struct Slots(*mut usize);

impl Slots {
    fn get(&self, i: usize) -> *mut usize {
        self.0.wrapping_add(i)
    }
}

// SAFETY: see `Slots`.
unsafe impl Sync for Slots {}

/// The pieces of rows that make up a block: pointer, step, length, row, place in the row of the first.
unsafe fn segments<T>(field: &Field, block: usize, total: usize, mut f: impl FnMut(*const T, isize, usize, usize, usize)) {
    let (width, step) = field.inner;
    let (mut at, end) = (block * BLOCK, ((block + 1) * BLOCK).min(total));
    while at < end {
        let (row, first) = (at / width, at % width);
        let n = (width - first).min(end - at);
        let mut offset = first as isize * step;
        let mut left = row;
        for &(size, stride) in field.outer.iter().rev() {
            offset += (left % size) as isize * stride;
            left /= size;
        }
        f(field.ptr.cast::<T>().wrapping_offset(offset), step, n, row, first);
        at += n;
    }
}

unsafe fn count_in<T: Bits>(ptr: *const T, step: isize, n: usize, mask: u128) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if step == 1 {
            // Short sums of bytes vectorise; they cannot overflow.
            return std::slice::from_raw_parts(ptr, n)
                .chunks(255)
                .map(|c| c.iter().map(|x| x.masked(mask) as u8).sum::<u8>() as usize)
                .sum();
        }
        (0..n as isize).map(|j| (*ptr.offset(j * step)).masked(mask) as usize).sum()
    }
}

/// Writes the places of a piece of a row from slot `to` on; gives the next slot.
unsafe fn put<T: Bits>(
    field: &Field,
    places: Places,
    mut to: usize,
    ptr: *const T,
    step: isize,
    n: usize,
    row: usize,
    first: usize,
    mask: u128,
) -> usize {
    let mut found = [0u32; CHUNK];
    let base = if places.linear { row * field.inner.0 } else { 0 };
    let mut done = 0;
    while done < n {
        let len = CHUNK.min(n - done);
        let mut k = 0;
        for j in 0..len {
            found[k] = j as u32;
            // SAFETY: the caller's.
            k += unsafe { (*ptr.offset((done + j) as isize * step)).masked(mask) } as usize;
        }
        k = k.min(places.total - to);
        let start = (base + first + done) as i64;
        let last = if places.linear { 0 } else { field.outer.len() * places.total };
        if !field.sizes.is_empty() || places.linear {
            for (slot, &j) in found[..k].iter().enumerate() {
                // SAFETY: `to + k` is within the places that there are.
                unsafe { *places.ptr.add(last + to + slot) = start + j as i64 };
            }
        }
        if !places.linear {
            let mut left = row;
            for (d, &(size, _)) in field.outer.iter().enumerate().rev() {
                let at = (left % size) as i64;
                left /= size;
                for slot in 0..k {
                    // SAFETY: as above, in the part of dimension `d`.
                    unsafe { *places.ptr.add(d * places.total + to + slot) = at };
                }
            }
        }
        to += k;
        done += len;
    }
    to
}
