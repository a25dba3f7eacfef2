//! Each kept element's reduced elements, one after the other.

use super::fold::{Folder, Partial};
use super::shape::Split;
use super::{Accumulators, CHUNK, TILE};
use crate::exec::iterate::{Cursor, Space};
use crate::exec::kernels;
use crate::exec::plan::Plan;
use crate::exec::run::{Call, NO_MEMORY, Scratch, Worker, outcome};
use crate::exec::step::{Class, StepFn};
use crate::pool;
use flambeau_base::Result;
use flambeau_engine::backend::{Combine, Reduce};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A reduction under way.
pub(super) struct Job<'a> {
    pub plan: &'a Plan,
    pub call: &'a Reduce<'a>,
    pub split: &'a Split,
    pub folder: Folder,
    pub accumulators: &'a Accumulators,
    pub places: &'a [*mut u8],
    pub kept: usize,
}

// SAFETY: the pointers are those of a kernel call; threads write different accumulators.
unsafe impl Sync for Job<'_> {}

/// Partial results of tiles in a binary tree over their numbers: level `i` holds 2^i tiles.
struct Cascade {
    levels: SmallVec<[Partial; 8]>,
    count: usize,
}

impl Cascade {
    fn new() -> Cascade {
        Cascade { levels: SmallVec::new(), count: 0 }
    }

    fn push(&mut self, mut partial: Partial, folder: &Folder) {
        let mut count = self.count;
        while count & 1 != 0 {
            if let Some(earlier) = self.levels.pop() {
                partial = (folder.merge)(&earlier, &partial);
            }
            count >>= 1;
        }
        self.levels.push(partial);
        self.count += 1;
    }

    fn total(&self, folder: &Folder) -> Partial {
        let mut levels = self.levels.iter().rev();
        let Some(&last) = levels.next() else { return folder.identity };
        levels.fold(last, |later, earlier| (folder.merge)(earlier, &later))
    }
}

impl Job<'_> {
    /// Fills the accumulators.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine; the places have `kept` elements each.
    pub unsafe fn run(&self) -> Result<()> {
        let space = self.split.reduced_space(self.call);
        let kept_space = self.split.kept_space(self.call);
        let reduced = space.numel;
        if reduced == 0 {
            // SAFETY: the caller's.
            (0..self.kept).for_each(|i| unsafe { self.accumulators.put(self.places, i, &self.folder.identity) });
            return Ok(());
        }
        let call = Call::for_results(self.plan, self.call.params, space, self.call.inputs);
        let chunks = reduced.div_ceil(CHUNK);
        let failed = AtomicU8::new(0);
        if chunks == 1 {
            pool::parallel_for(self.kept, (CHUNK / 2 / reduced).max(1), &|range| {
                // SAFETY: the caller's; each range writes its own accumulators.
                let failure = unsafe {
                    self.each(&call, &kept_space, 1, range, |i, partial| self.accumulators.put(self.places, i, partial))
                };
                failed.fetch_or(failure, Relaxed);
            });
            return outcome(failed.into_inner());
        }
        let partials = Scratch::new((self.kept * chunks).saturating_mul(size_of::<Partial>()));
        let Ok(partials) = partials else { return outcome(NO_MEMORY) };
        let partials = Partials(partials.ptr().cast::<Partial>(), partials);
        pool::parallel_for(self.kept * chunks, 1, &|range| {
            // SAFETY: as above; each range writes its own partial results.
            let failure = unsafe { self.each(&call, &kept_space, chunks, range, |i, partial| partials.at(i).write(*partial)) };
            failed.fetch_or(failure, Relaxed);
        });
        for i in 0..self.kept {
            let mut cascade = Cascade::new();
            // SAFETY: all partial results were written, unless memory was lacking; then they are not used.
            unsafe {
                (0..chunks).for_each(|c| cascade.push(*partials.at(i * chunks + c), &self.folder));
                self.accumulators.put(self.places, i, &cascade.total(&self.folder));
            }
        }
        outcome(failed.into_inner())
    }

    /// Folds tasks: task `i` is chunk `i % chunks` of kept element `i / chunks`.
    unsafe fn each(&self, call: &Call, kept_space: &Space, chunks: usize, range: Range<usize>, put: impl Fn(usize, &Partial)) -> u8 {
        let reduced = call.space().numel;
        let Ok(mut worker) = Worker::new(call, TILE.min(reduced)) else { return NO_MEMORY };
        let to_bool = self.conversion();
        let mut truth = [0u8; TILE];
        let mut failure = 0;
        let (mut kept, mut cursor) = (usize::MAX, Cursor::at(kept_space, range.start / chunks));
        for task in range {
            if task / chunks != kept {
                if kept != usize::MAX {
                    cursor.advance(kept_space, 1);
                }
                kept = task / chunks;
                let shifts: SmallVec<[isize; 4]> = (0..self.call.inputs.len()).map(|k| cursor.offset(kept_space, k)).collect();
                // SAFETY: the reduced elements of a kept one are inside the inputs.
                unsafe { worker.rebase(&shifts) };
            }
            let start = task % chunks * CHUNK;
            let end = (start + CHUNK).min(reduced);
            let mut cascade = Cascade::new();
            let mut at = start;
            while at < end {
                let n = TILE.min(end - at);
                let place = Cursor::at(call.space(), at);
                // SAFETY: the tile is inside the reduced space; its results are `n` elements of the class.
                unsafe {
                    failure |= worker.eval(&place, at, n);
                    let mut values = worker.result(0);
                    if let Some(f) = to_bool {
                        f(truth.as_mut_ptr(), [values; 3], n);
                        values = truth.as_ptr();
                    }
                    let mut partial = (self.folder.fold)(values, n);
                    if matches!(self.accumulators.combine, Combine::ArgMax | Combine::ArgMin) {
                        partial.place = self.logical(call.space(), at, n, &partial, values);
                    }
                    cascade.push(partial, &self.folder);
                }
                at += n;
            }
            put(task, &cascade.total(&self.folder));
        }
        failure
    }

    /// What makes truth values of the elements, where that is not what the program gives.
    fn conversion(&self) -> Option<StepFn> {
        let element = Class::of(self.call.program.output_dtypes()[0]);
        if self.accumulators.class != Class::Bool { None } else { kernels::convert(element, flambeau_base::DType::Bool) }
    }

    /// The first place, in row-major order, of a tile's extremum.
    unsafe fn logical(&self, space: &Space, at: usize, n: usize, best: &Partial, values: *const u8) -> i64 {
        let numbers = space.strides.len() - 1;
        if space.is_linear(numbers, 1) {
            return at as i64 + best.place;
        }
        let size = self.accumulators.class.size();
        let number = |i: usize| Cursor::at(space, at + i).offset(space, numbers) as i64;
        let mut first = number(best.place as usize);
        for i in best.place as usize + 1..n {
            // SAFETY: element `i` of the tile is folded alone to tell whether it ties.
            let one = unsafe { (self.folder.fold)(values.add(i * size), 1) };
            let other = Partial { place: 1, ..one };
            let kept = Partial { place: 2, ..*best };
            if (self.folder.merge)(&kept, &other).place == 1 {
                first = first.min(number(i));
            }
        }
        first
    }
}

/// Partial results of chunks.
struct Partials(*mut Partial, #[allow(dead_code, reason = "kept for its drop")] Scratch);

// SAFETY: threads write different elements.
unsafe impl Sync for Partials {}

impl Partials {
    fn at(&self, i: usize) -> *mut Partial {
        self.0.wrapping_add(i)
    }
}
