//! Operands brought into the order in which they are packed, once instead of for every panel.

use super::operands::Element;
use crate::alloc;
use crate::gemm::Table;
use crate::nn::real::Shared;
use crate::pool::parallel_for;
use flambeau_base::{Error, Result};
use flambeau_engine::backend::layers::Conv;
use std::ptr::NonNull;

/// Memory that goes back when it is dropped.
pub struct Held<T> {
    ptr: NonNull<u8>,
    bytes: usize,
    of: std::marker::PhantomData<T>,
}

impl<T> Held<T> {
    fn new(count: usize) -> Result<Held<T>> {
        let bytes = count * size_of::<T>();
        let ptr = alloc::allocate(bytes).map_err(|e| Error::runtime(e.to_string()))?;
        Ok(Held { ptr, bytes, of: std::marker::PhantomData })
    }

    fn ptr(&self) -> *mut T {
        self.ptr.as_ptr().cast()
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this size.
        unsafe { alloc::deallocate(self.ptr, self.bytes) }
    }
}

/// Elements that are worth a thread.
const GRAIN: usize = 32 << 10;

/// Writes the columns of a matrix of adjacent numbers as rows, `to_row` apart.
unsafe fn turn<T: Element>(table: &Table<T, T>, from: *const T, line: isize, lines: usize, length: usize, to: *mut T, to_row: usize) {
    // SAFETY: the caller's.
    unsafe {
        if lines.is_multiple_of(table.lanes) || lines.next_multiple_of(table.lanes) <= to_row {
            return (table.pack)(from, line, 1, lines, length, to, to_row);
        }
        // Whole vectors would reach into the next row.
        for i in 0..lines {
            for p in 0..length {
                *to.add(p * to_row + i) = *from.wrapping_offset(i as isize * line + p as isize);
            }
        }
    }
}

/// The weight with input channels fastest, as `[out, kernel, in]`; where it lies so already, nothing is done.
///
/// # Safety
/// The kernel contract.
pub unsafe fn weight<T: Element>(call: &mut Conv) -> Result<Option<Held<T>>> {
    let [channels, outer] = call.channels;
    let [_, kh, kw] = call.kernel;
    let taps: usize = call.kernel.iter().product();
    let wide = channels as isize;
    let wanted = [taps as isize * wide, 1, (kh * kw) as isize * wide, kw as isize * wide, wide];
    let sizes = [call.groups * outer, channels, call.kernel[0], kh, kw];
    if (0..5).all(|d| sizes[d] == 1 || call.w.strides[d] == wanted[d]) {
        return Ok(None);
    }
    let copy = Held::<T>::new(call.groups * outer * taps * channels)?;
    let old = call.w;
    let dense = [3, 4].iter().all(|&d| old.strides[d - 1] == old.strides[d] * sizes[d] as isize || sizes[d - 1] == 1);
    let adjacent = dense && (old.strides[4] == 1 || taps == 1);
    let shared = Shared((old, copy.ptr()));
    let table = T::table_here();
    parallel_for(call.groups * outer, GRAIN / (taps * channels).max(1), &|range| {
        let (old, to) = { &shared }.0;
        for o in range {
            let from = old.ptr.cast::<T>().wrapping_offset(o as isize * old.strides[0]).cast_const();
            let to = to.wrapping_add(o * taps * channels);
            // SAFETY: the weights of one output channel.
            unsafe {
                if adjacent {
                    turn(table, from, old.strides[1], channels, taps, to, channels);
                    continue;
                }
                for tap in 0..taps {
                    let at = [tap / (kh * kw), tap / kw % kh, tap % kw];
                    let from = from.wrapping_offset((0..3).map(|d| at[d] as isize * old.strides[2 + d]).sum());
                    for i in 0..channels {
                        *to.add(tap * channels + i) = *from.wrapping_offset(i as isize * old.strides[1]);
                    }
                }
            }
        }
    });
    call.w.ptr = copy.ptr().cast();
    call.w.strides = wanted;
    Ok(Some(copy))
}

/// The input with channels fastest, where windows of several elements would otherwise turn every number several times.
///
/// # Safety
/// The kernel contract.
pub unsafe fn input<T: Element>(call: &mut Conv) -> Result<Option<Held<T>>> {
    let channels = call.channels[0] * call.groups;
    let area: usize = call.input.iter().product();
    let taps: usize = call.kernel.iter().product();
    let x = call.x;
    let dense = [2, 3, 4].map(|d| x.strides[d]) == [(call.input[1] * call.input[2]) as isize, call.input[2] as isize, 1];
    let table = T::table_here();
    if taps == 1 || call.channels[0] < table.lanes || !dense {
        return Ok(None);
    }
    // Rows end with whole vectors.
    let row = channels.next_multiple_of(table.lanes);
    let copy = Held::<T>::new(call.batch * area * row)?;
    let shared = Shared((x, copy.ptr()));
    // Positions that are turned at a time, so that both sides stay near.
    const BLOCK: usize = 256;
    let blocks = area.div_ceil(BLOCK);
    parallel_for(call.batch * blocks, GRAIN / (BLOCK * row), &|range| {
        let (x, to) = { &shared }.0;
        for task in range {
            let (n, first) = (task / blocks, task % blocks * BLOCK);
            let from = x.ptr.cast::<T>().wrapping_offset(n as isize * x.strides[0] + first as isize).cast_const();
            let to = to.wrapping_add((n * area + first) * row);
            // SAFETY: a block of positions of one image.
            unsafe { turn(table, from, x.strides[1], channels, BLOCK.min(area - first), to, row) }
        }
    });
    let step = row as isize;
    call.x.ptr = copy.ptr().cast();
    call.x.strides = [area as isize * step, 1, (call.input[1] * call.input[2]) as isize * step, call.input[2] as isize * step, step];
    Ok(Some(copy))
}
