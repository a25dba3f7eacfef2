//! Partial results put together as a binary tree over their numbers.

use super::fold::{Columns, Folder, Partial};
use super::{Accumulators, Job};
use crate::alloc::OutOfMemory;
use crate::exec::run::Scratch;
use smallvec::SmallVec;

/// Partial results of tiles: each level holds twice as many tiles as the next, as the digits of a binary number.
pub struct Cascade {
    levels: SmallVec<[Partial; 8]>,
    count: usize,
}

impl Cascade {
    /// Nothing yet.
    pub fn new() -> Cascade {
        Cascade { levels: SmallVec::new(), count: 0 }
    }

    /// Adds the next tile.
    pub fn push(&mut self, mut partial: Partial, folder: &Folder) {
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

    /// All tiles put together.
    pub fn total(&self, folder: &Folder) -> Partial {
        let mut levels = self.levels.iter().rev();
        let Some(&last) = levels.next() else { return folder.identity };
        levels.fold(last, |later, earlier| (folder.merge)(earlier, &later))
    }
}

/// A [`Cascade`] of many columns at once.
pub struct ColumnCascade {
    memory: Scratch,
    /// Bytes of one level, and of the values in it.
    level: usize,
    values: usize,
    counts: SmallVec<[usize; 16]>,
    pushed: usize,
}

impl ColumnCascade {
    /// Room for so many groups of `width` columns.
    pub fn new(groups: usize, width: usize, accumulators: &Accumulators) -> Result<ColumnCascade, OutOfMemory> {
        let depth = (usize::BITS - groups.leading_zeros()) as usize + 1;
        let values = (width * accumulators.class.size()).next_multiple_of(64);
        let level = values + (width * accumulators.second_size()).next_multiple_of(64);
        Ok(ColumnCascade { memory: Scratch::new(depth * level)?, level, values, counts: SmallVec::new(), pushed: 0 })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.pushed = 0;
    }

    fn columns(&self, i: usize, count: usize) -> Columns {
        let value = self.memory.ptr().wrapping_add(i * self.level);
        Columns { value, second: value.wrapping_add(self.values), count }
    }

    /// Where the next group's results are to be written; then it is to be pushed.
    pub fn next(&self) -> Columns {
        self.columns(self.counts.len(), 0)
    }

    /// Adds what was written to [`ColumnCascade::next`]: results of so many elements each.
    ///
    /// # Safety
    /// `n` columns were written there, as many as in all groups before.
    pub unsafe fn push(&mut self, elements: usize, n: usize, job: &Job) {
        self.counts.push(elements);
        let mut pushed = self.pushed;
        while pushed & 1 != 0 {
            // SAFETY: both levels hold `n` columns.
            unsafe { self.merge_last(n, job) };
            pushed >>= 1;
        }
        self.pushed += 1;
    }

    unsafe fn merge_last(&mut self, n: usize, job: &Job) {
        let last = self.counts.len() - 1;
        let (a, b) = (self.columns(last - 1, self.counts[last - 1]), self.columns(last, self.counts[last]));
        // SAFETY: the caller's; levels lie apart.
        unsafe { (job.accumulators.folder.merge_columns)(&a, &b, n) };
        self.counts[last - 1] += self.counts[last];
        self.counts.pop();
    }

    /// All groups put together; there was at least one.
    ///
    /// # Safety
    /// As for [`ColumnCascade::push`].
    pub unsafe fn total(&mut self, n: usize, job: &Job) -> Columns {
        while self.counts.len() > 1 {
            // SAFETY: the caller's.
            unsafe { self.merge_last(n, job) };
        }
        self.columns(0, self.counts[0])
    }
}
