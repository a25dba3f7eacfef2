//! Elements named by index tensors, and where a tensor is not zero.

mod element;
mod nonzero;
mod sweep;

pub(crate) use nonzero::nonzero;

use crate::pool::{num_threads, parallel_for};
use element::{Combine, with_bits, with_number};
use flambeau_base::{Error, Result};
use flambeau_engine::backend::{IndexMode, Indexing};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use sweep::{Dim, Part, Sweep};

/// So many elements are worth handing to another thread.
const GRAIN: usize = 16 * 1024;

/// Carries out the call.
///
/// # Safety
/// See NOTE [kernel contract] in `backend`: every place that indices in range name lies in the tensor.
pub(crate) unsafe fn index(call: &Indexing) -> Result<()> {
    if call.mode != IndexMode::Get {
        // Nothing is written where an index is out of range.
        // SAFETY: the caller's.
        unsafe { check(call)? };
    }
    let bad = AtomicBool::new(false);
    let sweep = Sweep::new(call, &bad);
    let dtype = call.tensor.dtype;
    // SAFETY: the caller's; what `meet` is given are an element of the tensor and one of the values.
    unsafe {
        match call.mode {
            IndexMode::Get => {
                with_bits!(dtype, T => split(&sweep, true, &|part| sweep.run::<T>(part, |element, value| *value = *element, Some(false))))
            }
            IndexMode::Put => {
                with_bits!(dtype, T => split(&sweep, false, &|part| sweep.run::<T>(part, |element, value| *element = *value, Some(true))))
            }
            IndexMode::Add => {
                with_number!(dtype, T => split(&sweep, false, &|part| sweep.run::<T>(part, |element, value| *element = (*element).plus(*value), None)))
            }
            mode => with_number!(dtype, T => split(&sweep, false, &|part| {
                let meet = |a: T, b: T| match mode {
                    IndexMode::Mul => a.times(b),
                    IndexMode::Max => a.larger(b),
                    _ => a.smaller(b),
                };
                sweep.run::<T>(part, |element, value| *element = meet(*element, *value), None)
            })),
        }
    }
    if bad.load(Ordering::Relaxed) {
        // SAFETY: the caller's.
        unsafe { check(call)? };
        return Err(Error::index(format!("{}: an index is out of bounds (the index tensor was changed meanwhile)", call.op)));
    }
    Ok(())
}

/// Shares the work out. Values that meet in one element stay with one thread, in order.
fn split(sweep: &Sweep, reads: bool, run: &(dyn Fn(&Part) + Sync)) {
    let total: usize = sweep.dims.iter().map(|d| d.size).product();
    // Along a dimension with a step of its own the elements differ.
    let apart = |d: &&(usize, &Dim)| reads || d.1.tensor != 0;
    let dims: SmallVec<[(usize, &Dim); 6]> = sweep.dims.iter().enumerate().collect();
    let widest = dims.iter().filter(apart).max_by_key(|(i, d)| (d.size.min(1024), std::cmp::Reverse(*i)));
    let threads = num_threads();
    match widest {
        _ if total <= GRAIN || threads == 1 => run(&Part::whole(sweep)),
        Some(&(i, dim)) if reads || dim.size >= 8 * threads => {
            let grain = (GRAIN * dim.size / total).max(1);
            parallel_for(dim.size, grain, &|range| run(&Part::of_dim(sweep, i, range)));
        }
        _ => {
            // Each thread looks at all indices and takes those that name its part of the tensor.
            let span = sweep.span();
            let parts = threads.min(span);
            parallel_for(parts, 1, &|range| {
                let at = |p: usize| (span as u128 * p as u128 / parts as u128) as usize;
                run(&Part::of_range(sweep, at(range.start)..at(range.end)));
            });
        }
    }
}

/// Finds an index that is out of range.
unsafe fn check(call: &Indexing) -> Result<()> {
    for index in call.indices {
        let dims: SmallVec<[(usize, isize); 6]> = merged(call.sizes, index.memory.strides);
        let (size, low) = (index.size as i64, if call.wraps { -(index.size as i64) } else { 0 });
        let base = index.memory.ptr.cast::<i64>();
        let Some((&(n, step), outer)) = dims.split_last() else {
            // SAFETY: the caller's: there is one element.
            let i = unsafe { *base };
            if i < low || i >= size {
                return Err(out_of_range(call, i, index.dim, index.size));
            }
            continue;
        };
        let rows: usize = outer.iter().map(|d| d.0).product();
        for row in 0..rows {
            let mut left = row;
            let mut at = 0isize;
            for &(n, s) in outer.iter().rev() {
                at += (left % n) as isize * s;
                left /= n;
            }
            // SAFETY: inside the index tensor, by its sizes and strides.
            let element = |j: usize| unsafe { *base.offset(at + j as isize * step) };
            // No branch inside: this loop is vectorised where the step is 1.
            let wrong = (0..n).fold(false, |wrong, j| wrong | (element(j) < low) | (element(j) >= size));
            if wrong && let Some(i) = (0..n).map(element).find(|&i| i < low || i >= size) {
                return Err(out_of_range(call, i, index.dim, index.size));
            }
        }
    }
    Ok(())
}

#[cold]
fn out_of_range(call: &Indexing, index: i64, dim: usize, size: usize) -> Error {
    Error::index(format!("{}: index {index} is out of bounds for dimension {dim} with size {size} (index out of range in self)", call.op))
}

/// Sizes and steps of one operand, dimensions without a step left out, neighbours put together.
fn merged(sizes: &[usize], strides: &[isize]) -> SmallVec<[(usize, isize); 6]> {
    let mut out: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    for (&n, &s) in sizes.iter().zip(strides).filter(|(n, s)| **n != 1 && **s != 0) {
        match out.last_mut() {
            Some(last) if last.1 == s * n as isize => *last = (last.0 * n, s),
            _ => out.push((n, s)),
        }
    }
    out
}
