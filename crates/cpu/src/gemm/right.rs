//! A right operand that is packed once for all rows, where its panels would else be packed for each block of them.

use std::ops::Range;

use super::Shared;
use super::driver::Plan;
use super::table::Kernels;
use crate::{alloc, pool};

/// Bytes of a packed right operand at a time.
const MOST_BYTES: usize = 16 << 20;

/// Fewer columns at a time would have the left operand packed too often.
const LEAST_COLUMNS: usize = 256;

/// Steps of a panel that are packed before those of the next: its numbers lie beside them.
const STEPS: usize = 64;

/// Panels that a thread packs side by side.
const PANELS: usize = 8;

/// Packed panels: each a whole column of panels high, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Right<E> {
    ptr: *const E,
    /// The first column of the first panel.
    first: usize,
}

/// Memory for packed panels, given back when dropped.
pub(super) struct Panels {
    ptr: std::ptr::NonNull<u8>,
    bytes: usize,
    /// Columns that it has room for.
    pub(super) columns: usize,
}

impl Drop for Panels {
    fn drop(&mut self) {
        // SAFETY: allocated in `Plan::panels` with this size.
        unsafe { alloc::deallocate(self.ptr, self.bytes) }
    }
}

impl<S: Kernels> Plan<'_, S> {
    /// How many of `columns` are packed at a time, or `None` where that does not pay.
    pub(super) fn packed_columns(&self, columns: usize) -> Option<usize> {
        let wide = self.table.columns();
        let most = MOST_BYTES / (self.k.max(1) * size_of::<S::Sum>()) / wide * wide;
        (self.indirect.is_none() && most >= LEAST_COLUMNS.min(columns)).then(|| {
            let strips = columns.div_ceil(most);
            columns.div_ceil(strips).next_multiple_of(wide)
        })
    }

    /// Memory for the panels of `columns`; `None` where there is none.
    pub(super) fn panels(&self, columns: usize) -> Option<Panels> {
        let bytes = columns.next_multiple_of(self.table.columns()) * self.k * size_of::<S::Sum>();
        alloc::allocate(bytes).ok().map(|ptr| Panels { ptr, bytes, columns })
    }

    /// Packs the right operand's `columns`, on several threads where that pays.
    ///
    /// # Safety
    ///
    /// As for [`super::gemm`]; the panels have room for the columns.
    pub(super) unsafe fn pack_right(&self, columns: Range<usize>, panels: &Panels) -> Right<S::Sum> {
        let wide = self.table.columns();
        let to = panels.ptr.as_ptr().cast::<S::Sum>();
        let count = columns.len().div_ceil(wide);
        let grain = (256 << 10) / (self.k * wide * size_of::<S::Sum>()) + 1;
        let shared = Shared((*self, to, columns.clone()));
        pool::parallel_for(count, grain, &|range: Range<usize>| {
            let (plan, to, columns) = &{ &shared }.0;
            for group in range.clone().step_by(PANELS) {
                // SAFETY: by the caller's promise; each panel is packed once.
                unsafe { plan.pack_panels(columns, group..(group + PANELS).min(range.end), *to) }
            }
        });
        Right { ptr: to, first: columns.start }
    }

    /// # Safety
    ///
    /// As for [`Plan::pack_right`], for some of its panels.
    unsafe fn pack_panels(&self, columns: &Range<usize>, panels: Range<usize>, to: *mut S::Sum) {
        let (wide, table) = (self.table.columns(), self.table);
        let most = if self.b.column == 1 { STEPS } else { self.k };
        for step in (0..self.k).step_by(most.max(1)) {
            let steps = most.min(self.k - step);
            for panel in panels.clone() {
                let column = columns.start + panel * wide;
                let width = wide.min(columns.end - column);
                // SAFETY: the columns and steps are in the operand, and the panel has room for them.
                unsafe {
                    let from = self.b.ptr.offset(step as isize * self.b.row + column as isize * self.b.column);
                    let to = to.add((panel * self.k + step) * wide);
                    (table.pack)(from, self.b.column, self.b.row, width, steps, to, wide);
                }
            }
        }
    }
}

impl<E> Right<E> {
    /// Where the panel of a column begins, at a step, of panels of `wide` columns and `k` steps.
    #[inline]
    pub(super) fn at(&self, column: usize, step: usize, k: usize, wide: usize) -> *const E {
        self.ptr.wrapping_add((column - self.first) * k + step * wide)
    }
}
