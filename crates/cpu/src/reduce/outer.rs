//! The fastest dimension is kept: rows of it are folded, all columns at once.

use super::cascade::ColumnCascade;
use super::fold::Columns;
use super::{CHUNK, GROUP, Job};
use crate::exec::iterate::{Cursor, Space};
use crate::exec::run::{Call, NO_MEMORY, Scratch, Worker, outcome};
use crate::pool;
use flambeau_base::Result;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Columns that are folded at once, of values alone and of values with something beside them.
const COLUMNS: usize = 1024;
const WIDE_COLUMNS: usize = 512;

/// A reduction across memory.
///
/// A task is a chunk of rows in a block of columns of a slice: kept elements that differ in the fastest kept
/// dimension only. How rows are cut into chunks does not matter to the result, see NOTE [order of a sum].
pub(super) struct Outer<'a> {
    job: &'a Job<'a>,
    /// The reduced dimensions.
    reduced: Space,
    /// The kept ones; the last operand is the number of the accumulator.
    kept: Space,
    /// Columns to a block.
    width: usize,
    /// The input whose elements are folded as they lie in memory.
    direct: Option<usize>,
    /// Blocks to a slice, rows to a chunk, chunks to a block.
    blocks: usize,
    chunk: usize,
    chunks: usize,
}

/// Where a block of columns is.
struct Block {
    /// Bytes from each input's first element.
    shifts: SmallVec<[isize; 4]>,
    /// Number of columns.
    columns: usize,
    /// The first accumulator, and how far apart they are.
    accumulator: usize,
    step: isize,
}

/// What a thread needs.
struct Tools<'c> {
    /// For full blocks and for the last one of a slice.
    workers: [Option<Worker<'c>>; 2],
    cascade: ColumnCascade,
}

impl<'a> Outer<'a> {
    pub(super) fn new(job: &'a Job<'a>, reduced: Space) -> Outer<'a> {
        let kept = job.split.kept_space_in_memory_order(job.call);
        let slice = kept.inner();
        let direct =
            super::direct(job.plan, job.call).filter(|&k| kept.inner_stride(k) == job.call.inputs[k].dtype.size() as isize || slice == 1);
        let width = slice.min(if job.accumulators.second_size() == 0 { COLUMNS } else { WIDE_COLUMNS });
        let chunk = (CHUNK / width).next_power_of_two().max(GROUP);
        let (blocks, chunks) = (slice.div_ceil(width), reduced.numel.div_ceil(chunk));
        Outer { job, reduced, kept, width, direct, blocks, chunk, chunks }
    }

    /// Fills the accumulators.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine.
    pub(super) unsafe fn run(self) -> Result<()> {
        let job = self.job;
        let last = self.kept.inner() - (self.blocks - 1) * self.width;
        let calls = [self.width, last].map(|columns| Call::for_results(job.plan, job.call.params, self.rows(columns), job.call.inputs));
        let tasks = self.kept.numel / self.kept.inner() * self.blocks * self.chunks;
        let each = self.width * self.chunk.min(self.reduced.numel);
        let size = self.width * (job.accumulators.class.size() + job.accumulators.second_size());
        let memory = if self.chunks > 1 { tasks.saturating_mul(size) } else { 0 };
        let Ok(memory) = Scratch::new(memory) else { return outcome(NO_MEMORY) };
        let partials = Partials { memory: memory.ptr(), size, values: self.width * job.accumulators.class.size() };
        let failed = AtomicU8::new(0);
        pool::parallel_for(tasks, (CHUNK / 2 / each).max(1), &|range| {
            // SAFETY: the caller's; each range writes its own accumulators or partial results.
            failed.fetch_or(unsafe { self.tasks(&calls, range, &partials) }, Relaxed);
        });
        if self.chunks > 1 && failed.load(Relaxed) & NO_MEMORY == 0 {
            pool::parallel_for(tasks / self.chunks, (CHUNK / self.width / self.chunks).max(1), &|range| {
                // SAFETY: all partial results are there; each range writes its own accumulators.
                failed.fetch_or(unsafe { self.put_together(range, &partials) }, Relaxed);
            });
        }
        outcome(failed.into_inner())
    }

    /// The space of a block: rows in order, then its columns.
    fn rows(&self, columns: usize) -> Space {
        let mut sizes = self.reduced.sizes.clone();
        sizes.push(columns);
        let step = |k: usize| if k < self.job.inputs() { self.kept.inner_stride(k) } else { 0 };
        let strides = self.reduced.strides.iter().enumerate().map(|(k, s)| s.iter().copied().chain([step(k)]).collect()).collect();
        Space { numel: self.reduced.numel * columns, sizes, strides }
    }

    fn block(&self, i: usize) -> Block {
        let (slice, first) = (i / self.blocks, i % self.blocks * self.width);
        let cursor = Cursor::at(&self.kept, slice * self.kept.inner() + first);
        let numbers = self.kept.strides.len() - 1;
        Block {
            shifts: (0..self.job.inputs()).map(|k| cursor.offset(&self.kept, k)).collect(),
            columns: self.width.min(self.kept.inner() - first),
            accumulator: cursor.offset(&self.kept, numbers) as usize,
            step: self.kept.inner_stride(numbers),
        }
    }

    unsafe fn tasks(&self, calls: &[Call; 2], range: Range<usize>, partials: &Partials) -> u8 {
        let job = self.job;
        let Ok(cascade) = ColumnCascade::new(self.chunk / GROUP, self.width, job.accumulators) else { return NO_MEMORY };
        let mut tools = Tools { workers: [None, None], cascade };
        if self.direct.is_none() {
            for (call, worker) in calls.iter().zip(&mut tools.workers) {
                let Ok(made) = Worker::new(call, GROUP * call.space().inner()) else { return NO_MEMORY };
                *worker = Some(made);
            }
        }
        let (mut failure, mut current) = (0, usize::MAX);
        let mut block = self.block(range.start / self.chunks);
        for task in range {
            if task / self.chunks != current {
                current = task / self.chunks;
                block = self.block(current);
                let worker = &mut tools.workers[(block.columns < self.width) as usize];
                // SAFETY: the block is inside the inputs.
                worker.iter_mut().for_each(|w| unsafe { w.rebase(&block.shifts) });
            }
            // SAFETY: the caller's.
            unsafe {
                failure |= self.fold(&block, task % self.chunks * self.chunk, &mut tools);
                let total = tools.cascade.total(block.columns, job);
                if self.chunks == 1 {
                    job.accumulators.put(job.places, block.accumulator, block.step, &total, block.columns);
                } else {
                    partials.keep(task, &total, job, block.columns);
                }
            }
        }
        failure
    }

    /// Folds a chunk of rows into the cascade.
    unsafe fn fold(&self, block: &Block, start: usize, tools: &mut Tools) -> u8 {
        let job = self.job;
        let end = (start + self.chunk).min(self.reduced.numel);
        let mut cursor = Cursor::at(&self.reduced, start);
        let mut failure = 0;
        tools.cascade.clear();
        for first in (start..end).step_by(GROUP) {
            let rows = GROUP.min(end - first);
            let mut pointers = [std::ptr::null::<u8>(); GROUP];
            let mut places = [0i64; GROUP];
            if let Some(worker) = &mut tools.workers[(block.columns < self.width) as usize] {
                let at = first * block.columns;
                // SAFETY: the group is inside the block's space.
                failure |= unsafe { worker.eval(at, rows * block.columns) };
                let size = job.accumulators.class.size();
                (0..rows).for_each(|r| pointers[r] = worker.result(0).wrapping_add(r * block.columns * size));
            }
            self.find_rows(block, first, rows, &mut cursor, &mut pointers, &mut places);
            // SAFETY: each row has the block's columns; the cascade has room for them.
            unsafe {
                (job.accumulators.folder.rows)(&tools.cascade.next(), &pointers[..rows], &places[..rows], block.columns);
                tools.cascade.push(rows, block.columns, job);
            }
        }
        failure
    }

    /// Numbers of the rows from `first` on, and their addresses where they are read in place.
    fn find_rows(&self, block: &Block, first: usize, rows: usize, cursor: &mut Cursor, pointers: &mut [*const u8], places: &mut [i64]) {
        let numbers = self.reduced.strides.len() - 1;
        let source = self.direct.map(|k| (k, self.job.call.inputs[k].ptr.wrapping_offset(block.shifts[k])));
        if self.reduced.sizes.len() == 1 {
            // One dimension: numbers and addresses are a step apart.
            let step = self.reduced.inner_stride(numbers);
            (0..rows).for_each(|r| places[r] = ((first + r) as isize * step) as i64);
            if let Some((k, base)) = source {
                let step = self.reduced.inner_stride(k);
                (0..rows).for_each(|r| pointers[r] = base.wrapping_offset((first + r) as isize * step).cast_const());
            }
            return;
        }
        for r in 0..rows {
            places[r] = cursor.offset(&self.reduced, numbers) as i64;
            if let Some((k, base)) = source {
                pointers[r] = base.wrapping_offset(cursor.offset(&self.reduced, k)).cast_const();
            }
            cursor.advance(&self.reduced, 1);
        }
    }

    /// Puts the chunks of blocks together.
    unsafe fn put_together(&self, range: Range<usize>, partials: &Partials) -> u8 {
        let job = self.job;
        let Ok(mut cascade) = ColumnCascade::new(self.chunks, self.width, job.accumulators) else { return NO_MEMORY };
        for i in range {
            let block = self.block(i);
            cascade.clear();
            for c in 0..self.chunks {
                let rows = self.chunk.min(self.reduced.numel - c * self.chunk);
                // SAFETY: the partial result was written, with as many columns.
                unsafe {
                    partials.read(i * self.chunks + c, &cascade.next(), job, block.columns);
                    cascade.push(rows, block.columns, job);
                }
            }
            // SAFETY: the caller's.
            unsafe {
                let total = cascade.total(block.columns, job);
                job.accumulators.put(job.places, block.accumulator, block.step, &total, block.columns);
            }
        }
        0
    }
}

/// Results of chunks.
struct Partials {
    memory: *mut u8,
    /// Bytes of one, and of the values in it.
    size: usize,
    values: usize,
}

// SAFETY: threads write different elements.
unsafe impl Sync for Partials {}

impl Partials {
    fn columns(&self, i: usize) -> Columns {
        let value = self.memory.wrapping_add(i * self.size);
        Columns { value, second: value.wrapping_add(self.values), count: 0 }
    }

    unsafe fn keep(&self, i: usize, from: &Columns, job: &Job, n: usize) {
        // SAFETY: the caller's.
        unsafe { copy(&self.columns(i), from, job, n) }
    }

    unsafe fn read(&self, i: usize, to: &Columns, job: &Job, n: usize) {
        // SAFETY: the caller's.
        unsafe { copy(to, &self.columns(i), job, n) }
    }
}

unsafe fn copy(to: &Columns, from: &Columns, job: &Job, n: usize) {
    let accumulators = job.accumulators;
    // SAFETY: both have room for `n` columns, apart from each other.
    unsafe {
        std::ptr::copy_nonoverlapping(from.value, to.value, n * accumulators.class.size());
        std::ptr::copy_nonoverlapping(from.second, to.second, n * accumulators.second_size());
    }
}
