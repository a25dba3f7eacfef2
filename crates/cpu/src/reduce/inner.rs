//! The fastest dimension is reduced: each kept element's reduced elements, one after the other.

use super::cascade::Cascade;
use super::fold::{Columns, Partial};
use super::{CHUNK, Job, TILE};
use crate::exec::iterate::{Cursor, Space};
use crate::exec::run::{Call, NO_MEMORY, Scratch, Worker, outcome};
use crate::pool;
use flambeau_base::Result;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Elements of several kept ones that are computed at once.
const BATCH: usize = 2 * TILE;

/// A reduction along memory.
pub(super) struct Inner<'a> {
    job: &'a Job<'a>,
    /// The reduced dimensions.
    reduced: Space,
    /// The kept ones.
    kept: Space,
    /// The input that is folded where it lies.
    direct: Option<usize>,
}

impl<'a> Inner<'a> {
    pub(super) fn new(job: &'a Job<'a>, reduced: Space) -> Inner<'a> {
        let direct = super::direct(job.plan, job.call).filter(|&k| reduced.is_linear(k, job.call.inputs[k].dtype.size()));
        Inner { job, reduced, kept: job.split.kept_space(job.call), direct }
    }

    /// Fills the accumulators.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine.
    pub(super) unsafe fn run(self) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { if self.reduced.numel <= TILE { self.short() } else { self.long() } }
    }

    /// Several kept elements to a tile.
    unsafe fn short(&self) -> Result<()> {
        let job = self.job;
        let each = self.reduced.numel;
        let call = Call::for_results(job.plan, job.call.params, self.together(), job.call.inputs);
        let rows = (BATCH / each).max(1);
        let failed = AtomicU8::new(0);
        pool::parallel_for(job.kept, (CHUNK / 2 / each).max(1), &|range| {
            // SAFETY: the caller's; each range writes its own accumulators.
            failed.fetch_or(unsafe { self.short_range(&call, rows, range) }, Relaxed);
        });
        outcome(failed.into_inner())
    }

    unsafe fn short_range(&self, call: &Call, rows: usize, range: Range<usize>) -> u8 {
        let (job, each) = (self.job, self.reduced.numel);
        let rows = rows.min(range.len());
        let size = job.accumulators.class.size();
        let (Ok(mut worker), Ok(memory)) = (Worker::new(call, rows * each), Scratch::new(rows * 24)) else { return NO_MEMORY };
        let columns = Columns { value: memory.ptr(), second: memory.ptr().wrapping_add(rows * 16), count: each };
        let mut failure = 0;
        let mut first = range.start;
        let mut cursor = Cursor::at(&self.kept, first);
        // SAFETY: the rows are inside the space; their results are put where the columns have room for as many.
        unsafe {
            worker.rebase(&[]);
            while first < range.end {
                let mut n = rows.min(range.end - first);
                let (values, step) = if let Some(k) = self.direct {
                    // Rows of one kept dimension are a step apart.
                    n = n.min(cursor.left(&self.kept));
                    (job.call.inputs[k].ptr.offset(cursor.offset(&self.kept, k)).cast_const(), self.kept.inner_stride(k))
                } else {
                    failure |= worker.eval(first * each, n * each);
                    (worker.result(0), (each * size) as isize)
                };
                (job.accumulators.folder.each)(values, step, n, each, &columns);
                if job.accumulators.has_places() && !self.in_order() {
                    self.number_places(values, step, n, &columns);
                }
                job.accumulators.put(job.places, first, 1, &columns, n);
                if self.direct.is_some() {
                    cursor.advance(&self.kept, n);
                }
                first += n;
            }
        }
        failure
    }

    /// Makes row-major numbers of the places in rows.
    unsafe fn number_places(&self, values: *const u8, step: isize, rows: usize, columns: &Columns) {
        let size = self.job.accumulators.class.size();
        for i in 0..rows {
            let mut best = self.job.accumulators.folder.identity;
            // SAFETY: the columns hold as many results; a row's values are readable.
            unsafe {
                std::ptr::copy_nonoverlapping(columns.value.add(i * size), best.value.as_mut_ptr().cast::<u8>(), size);
                best.second = *columns.second.cast::<u64>().add(i);
                *columns.second.cast::<u64>().add(i) = self.place(0, self.reduced.numel, &best, values.offset(i as isize * step));
            }
        }
    }

    /// Whether the reduced elements are walked in row-major order.
    fn in_order(&self) -> bool {
        self.reduced.is_linear(self.reduced.strides.len() - 1, 1)
    }

    /// The kept dimensions and after them the reduced ones.
    fn together(&self) -> Space {
        let join = |a: &[isize], b: &[isize]| a.iter().chain(b).copied().collect();
        Space {
            sizes: self.kept.sizes.iter().chain(&self.reduced.sizes).copied().collect(),
            strides: self.kept.strides.iter().zip(&self.reduced.strides).map(|(a, b)| join(a, b)).collect(),
            numel: self.kept.numel * self.reduced.numel,
        }
    }

    /// Many tiles to a kept element.
    unsafe fn long(self) -> Result<()> {
        let job = self.job;
        let chunks = self.reduced.numel.div_ceil(CHUNK);
        let call = Call::for_results(job.plan, job.call.params, self.reduced.clone(), job.call.inputs);
        let Ok(memory) = Scratch::new((job.kept * chunks).saturating_mul(size_of::<Partial>())) else { return outcome(NO_MEMORY) };
        let partials = Partials(memory.ptr().cast());
        let failed = AtomicU8::new(0);
        pool::parallel_for(job.kept * chunks, (CHUNK / 2 / self.reduced.numel).max(1), &|range| {
            // SAFETY: the caller's; each range writes its own partial results.
            failed.fetch_or(unsafe { self.long_range(&call, chunks, range, &partials) }, Relaxed);
        });
        for i in 0..job.kept {
            let mut cascade = Cascade::new();
            // SAFETY: all partial results were written, unless memory was lacking; then the results are not used.
            unsafe {
                (0..chunks).for_each(|c| cascade.push(*partials.at(i * chunks + c), &job.accumulators.folder));
                job.accumulators.put(job.places, i, 1, &cascade.total(&job.accumulators.folder).columns(), 1);
            }
        }
        outcome(failed.into_inner())
    }

    /// Folds tasks: task `i` is chunk `i % chunks` of kept element `i / chunks`.
    unsafe fn long_range(&self, call: &Call, chunks: usize, range: Range<usize>, partials: &Partials) -> u8 {
        let job = self.job;
        let reduced = self.reduced.numel;
        let Ok(mut worker) = Worker::new(call, TILE) else { return NO_MEMORY };
        let size = job.accumulators.class.size();
        let mut failure = 0;
        let mut kept = usize::MAX;
        let mut base = std::ptr::null::<u8>();
        for task in range {
            if task / chunks != kept {
                kept = task / chunks;
                let cursor = Cursor::at(&self.kept, kept);
                let shifts: SmallVec<[isize; 4]> = (0..job.inputs()).map(|k| cursor.offset(&self.kept, k)).collect();
                // SAFETY: the reduced elements of a kept one are inside the inputs.
                unsafe { worker.rebase(&shifts) };
                if let Some(k) = self.direct {
                    base = job.call.inputs[k].ptr.wrapping_offset(shifts[k]);
                }
            }
            let start = task % chunks * CHUNK;
            let end = (start + CHUNK).min(reduced);
            let mut cascade = Cascade::new();
            for at in (start..end).step_by(TILE) {
                let n = TILE.min(end - at);
                // SAFETY: the tile is inside the reduced space; its results are `n` elements of the class.
                unsafe {
                    let values = if self.direct.is_some() {
                        base.add(at * size)
                    } else {
                        failure |= worker.eval(at, n);
                        worker.result(0)
                    };
                    let mut partial = (job.accumulators.folder.fold)(values, n);
                    if job.accumulators.has_places() {
                        partial.second = self.place(at, n, &partial, values);
                    }
                    cascade.push(partial, &job.accumulators.folder);
                }
            }
            // SAFETY: there is a place for each task.
            unsafe { partials.at(task).write(cascade.total(&job.accumulators.folder)) };
        }
        failure
    }

    /// The first place, in row-major order, of the extremum of a tile that has `at` elements before it.
    unsafe fn place(&self, at: usize, n: usize, best: &Partial, values: *const u8) -> u64 {
        let space = &self.reduced;
        let numbers = space.strides.len() - 1;
        if self.in_order() {
            return at as u64 + best.second;
        }
        let size = self.job.accumulators.class.size();
        let number = |i: usize| Cursor::at(space, at + i).offset(space, numbers) as u64;
        let mut first = number(best.second as usize);
        for i in best.second as usize + 1..n {
            // SAFETY: element `i` of the tile, folded alone, wins against the best only where it ties and has the lower place.
            let one = unsafe { (self.job.accumulators.folder.fold)(values.add(i * size), 1) };
            let (kept, other) = (Partial { second: 2, ..*best }, Partial { second: 1, ..one });
            if (self.job.accumulators.folder.merge)(&kept, &other).second == 1 {
                first = first.min(number(i));
            }
        }
        first
    }
}

/// Partial results of chunks.
struct Partials(*mut Partial);

// SAFETY: threads write different elements.
unsafe impl Sync for Partials {}

impl Partials {
    fn at(&self, i: usize) -> *mut Partial {
        self.0.wrapping_add(i)
    }
}
