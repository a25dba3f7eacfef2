//! One parallel loop: how its range is cut up and claimed.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A number alone on its cache lines (two, since processors fetch them in pairs).
#[repr(align(128))]
pub(super) struct Padded(pub(super) AtomicUsize);

/// Each thread begins with a contiguous segment of its own, so that the same data tends to stay with the same
/// thread from loop to loop, and cuts it into this many chunks; who is done first takes chunks of the others.
const CHUNKS_PER_THREAD: usize = 4;

/// What a loop has to do. The function outlives the loop, whatever its type says: [`super::worker`] sees to it.
#[derive(Clone, Copy)]
pub(super) struct Job {
    f: *const (dyn Fn(Range<usize>) + Sync),
    n: usize,
    /// Elements to a chunk.
    chunk: usize,
    chunks: usize,
    pub(super) threads: usize,
}

impl Job {
    /// The plan for `f` over `0..n`, where `n > grain > 0`, on up to `threads` threads.
    pub(super) fn new(n: usize, grain: usize, threads: usize, f: &(dyn Fn(Range<usize>) + Sync)) -> Job {
        let grains = n.div_ceil(grain);
        // Round down: a chunk more or less is better than a last chunk that all wait for.
        let chunk = (grains / (threads * CHUNKS_PER_THREAD)).max(1) * grain;
        let chunks = n.div_ceil(chunk);
        // SAFETY: only the lifetime changes; see `Job`.
        let f = unsafe { std::mem::transmute::<&(dyn Fn(Range<usize>) + Sync), &'static (dyn Fn(Range<usize>) + Sync)>(f) };
        Job { f, n, chunk, chunks, threads: threads.min(chunks) }
    }

    /// A job that is never run.
    pub(super) fn none() -> Job {
        Job { f: &|_| {}, n: 0, chunk: 0, chunks: 0, threads: 0 }
    }

    fn segment(&self, thread: usize) -> Range<usize> {
        // Products of counts below 2^32 or so; widen for 32-bit machines.
        let bound = |thread: usize| (thread as u128 * self.chunks as u128 / self.threads as u128) as usize;
        bound(thread)..bound(thread + 1)
    }

    /// Sets the counters to the first chunk of each segment.
    pub(super) fn prepare(&self, next: &[Padded]) {
        for (thread, counter) in next[..self.threads].iter().enumerate() {
            counter.0.store(self.segment(thread).start, Relaxed);
        }
    }

    /// Lets nobody claim another chunk.
    pub(super) fn cancel(&self, next: &[Padded]) {
        for (thread, counter) in next[..self.threads].iter().enumerate() {
            counter.0.store(self.segment(thread).end, Relaxed);
        }
    }

    /// Does chunks, first those of the thread's own segment, until none is left.
    ///
    /// # Safety
    ///
    /// The function is still alive.
    pub(super) unsafe fn work(&self, thread: usize, next: &[Padded]) {
        // SAFETY: alive, by the caller's promise.
        let f = unsafe { &*self.f };
        for turn in 0..self.threads {
            let owner = (thread + turn) % self.threads;
            let end = self.segment(owner).end;
            let counter = &next[owner].0;
            while counter.load(Relaxed) < end {
                let index = counter.fetch_add(1, Relaxed);
                if index >= end {
                    break;
                }
                let start = index * self.chunk;
                f(start..(start + self.chunk).min(self.n));
            }
        }
    }
}
