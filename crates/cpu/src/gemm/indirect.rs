//! Products of operands that are no matrices in memory.

use std::ops::Range;

use super::driver::Plan;
use super::table::{Kernels, Table};
use super::{Bias, GemmElement, Matrix, MatrixMut};

/// Operands that are packed, and a result that is stored, by functions of the caller's: windows of a tensor, say.
pub(crate) trait Indirect<S: Kernels>: Sync {
    /// Packs rows of the left operand, as `kernel::pack` does: step by step, `to_row` numbers apart, the rows of a step
    /// side by side and filled up to whole vectors.
    ///
    /// # Safety
    ///
    /// The rows and steps are in the operand, and `to` has room for them.
    unsafe fn pack_left(&self, table: &Table<S, S::Sum>, rows: Range<usize>, steps: Range<usize>, to: *mut S::Sum, to_row: usize);

    /// Packs columns of the right operand in the same way.
    ///
    /// # Safety
    ///
    /// As for [`Indirect::pack_left`].
    unsafe fn pack_right(&self, table: &Table<S, S::Sum>, columns: Range<usize>, steps: Range<usize>, to: *mut S::Sum, to_row: usize);

    /// Stores a part of a row of the result.
    ///
    /// # Safety
    ///
    /// The row and columns are in the result; `from` holds a number for each column.
    unsafe fn store(&self, row: usize, columns: Range<usize>, from: *const S::Sum);
}

/// A product of such operands, with a bias.
pub(crate) struct IndirectProduct<'a, S: GemmElement + Kernels> {
    /// Rows of the result.
    pub(crate) m: usize,
    /// Columns of the result.
    pub(crate) n: usize,
    /// Length of the sums.
    pub(crate) k: usize,
    /// Added to the sums.
    pub(crate) bias: Bias<S>,
    /// The operands.
    pub(crate) operands: &'a dyn Indirect<S>,
}

impl<'a, S: GemmElement + Kernels> IndirectProduct<'a, S> {
    fn plan(&self) -> Plan<'a, S> {
        let none = Matrix { ptr: std::ptr::null(), row: 0, column: 0 };
        Plan {
            m: self.m,
            n: self.n,
            k: self.k,
            a: none,
            b: none,
            c: MatrixMut { ptr: std::ptr::null_mut(), row: 0, column: 1 },
            alpha: None,
            accumulate: false,
            bias: self.bias,
            table: S::table_here(),
            indirect: Some(self.operands),
            right: None,
        }
    }

    /// Additions and multiplications.
    pub(crate) fn operations(&self) -> f64 {
        self.plan().operations()
    }

    /// Into how many parts rows and columns are best cut, where there are `count` such products for so many threads.
    pub(crate) fn grid(&self, count: usize, threads: usize) -> (usize, usize) {
        self.plan().grid(count, threads)
    }

    /// Computes one of the parts of a grid.
    ///
    /// # Safety
    ///
    /// The operands' functions may be called for all rows, columns and steps; nothing else uses that part of the result.
    pub(crate) unsafe fn run(&self, grid: (usize, usize), part: (usize, usize)) {
        let plan = self.plan();
        let rows = super::driver::part_of(self.m, plan.table.rows(), grid.0, part.0);
        let columns = super::driver::part_of(self.n, plan.table.columns(), grid.1, part.1);
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        // SAFETY: by the caller's promise.
        unsafe { plan.run_task(rows, columns) }
    }
}
