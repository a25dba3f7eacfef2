//! How a floating-point product is cut into tasks for the threads.

use std::ops::Range;

use super::indirect::Indirect;
use super::right::Right;
use super::table::{Kernels, Table};
use super::{BatchAxis, Bias, Gemm, GemmElement, Matrix, MatrixMut, Shared, batch_item, batch_len, vecmat};
use crate::pool;

/// Operations (two to a multiply-add) below which one thread is faster than several.
const PARALLEL: f64 = 1.0e6;

/// Tiles of rows for each thread below which panels are packed by each part of a product for itself.
const UNSHARED_TILES: usize = 4;

/// The length of the blocks of k, at most `most`, from k alone.
pub(super) fn k_block(k: usize, most: usize) -> usize {
    if k <= most { k } else { k.div_ceil(k.div_ceil(most)).next_multiple_of(8) }
}

/// A product with columns of the result adjacent wherever that can be, and how it is to be read.
pub(super) struct Plan<'a, S: Kernels> {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Matrix<S>,
    pub(super) b: Matrix<S>,
    pub(super) c: MatrixMut<S>,
    pub(super) alpha: Option<S::Sum>,
    pub(super) accumulate: bool,
    pub(super) bias: Bias<S>,
    pub(super) table: &'static Table<S, S::Sum>,
    /// What stands in for `a`, `b` and `c` where they are no matrices.
    pub(super) indirect: Option<&'a dyn Indirect<S>>,
    /// The right operand's panels, where they are packed already.
    pub(super) right: Option<Right<S::Sum>>,
}

impl<S: Kernels> Clone for Plan<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Kernels> Copy for Plan<'_, S> {}

/// # Safety
///
/// As for [`super::gemm_batched`].
pub(super) unsafe fn run<S: Kernels + GemmElement<Alpha = S::Sum>>(product: &Gemm<S>, batch: &[BatchAxis]) {
    if product.m == 0 || product.n == 0 {
        return;
    }
    let table = S::table_here();
    if batch.is_empty() {
        // SAFETY: by the caller's promise.
        return unsafe { run_one(product, table) };
    }
    let (mut product, mut batch) = (*product, batch);
    while let Some((axis, rest)) = batch.split_last()
        && fold(&mut product, axis)
    {
        batch = rest;
    }
    let count = batch_len(batch);
    // SAFETY: by the caller's promise; the tasks write disjoint parts of the results.
    unsafe {
        match count {
            0 => (),
            1 => run_one(&product, table),
            _ => run_many(&product, table, batch, count),
        }
    }
}

/// # Safety
///
/// As for [`super::gemm`].
unsafe fn run_one<S: Kernels + GemmElement<Alpha = S::Sum>>(product: &Gemm<S>, table: &'static Table<S, S::Sum>) {
    let plan = Plan::new(product, table);
    // SAFETY: by the caller's promise.
    unsafe {
        if plan.is_small() {
            plan.run_small();
        } else if plan.is_vector() {
            vecmat::run(&plan);
        } else if plan.operations() < PARALLEL || is_alone() {
            plan.run_task(0..plan.m, 0..plan.n);
        } else {
            run_parallel(&plan, product, &[], 1);
        }
    }
}

/// # Safety
///
/// As for [`super::gemm_batched`], for two products at least.
unsafe fn run_many<S: Kernels + GemmElement<Alpha = S::Sum>>(
    product: &Gemm<S>,
    table: &'static Table<S, S::Sum>,
    batch: &[BatchAxis],
    count: usize,
) {
    let plan = Plan::new(product, table);
    let small = plan.is_small();
    // SAFETY: by the caller's promise.
    unsafe {
        if !small && !plan.is_vector() && plan.operations() * count as f64 >= PARALLEL && !is_alone() {
            return run_parallel(&plan, product, batch, count);
        }
    }
    // Few long vectors are better shared out one by one, each among all threads.
    let each = plan.operations().max(1.0);
    let grain = if each >= PARALLEL { count } else { (PARALLEL / 4.0 / each).ceil() as usize };
    let shared = Shared((plan, *product));
    pool::parallel_for(count, grain, &|range: Range<usize>| {
        let (plan, product) = &{ &shared }.0;
        for index in range {
            let plan = plan.at(product, batch, index);
            // SAFETY: each result belongs to one index, and the caller promises the rest.
            unsafe {
                if small {
                    plan.run_small();
                } else if plan.is_vector() {
                    vecmat::run(&plan);
                } else {
                    plan.run_task(0..plan.m, 0..plan.n);
                }
            }
        }
    });
}

/// Whether the calling thread will get no help.
fn is_alone() -> bool {
    pool::num_threads() == 1 || pool::in_parallel()
}

/// Makes the products along an axis one product with more rows, where the right operand is the same for all of
/// them and the rows of the others go on at the same distance.
fn fold<T: GemmElement>(product: &mut Gemm<T>, axis: &BatchAxis) -> bool {
    let rows = product.m as isize;
    let continues = axis.b == 0 && axis.a == rows * product.a.row && axis.c == rows * product.c.row;
    let folds = axis.len == 1 || (axis.len > 1 && continues && !matches!(product.bias, Bias::Rows(_)));
    if folds {
        product.m *= axis.len;
    }
    folds
}

/// # Safety
///
/// As for [`super::gemm_batched`].
unsafe fn run_parallel<S: Kernels + GemmElement<Alpha = S::Sum>>(
    first: &Plan<'_, S>,
    product: &Gemm<S>,
    batch: &[BatchAxis],
    count: usize,
) {
    // Where rows are cut as well, all parts take panels that are packed once.
    let threads = pool::num_threads();
    if count == 1
        && first.m > first.table.rows() * threads * UNSHARED_TILES
        && let Some(columns) = first.packed_columns(first.n)
        && let Some(panels) = first.panels(columns)
    {
        for start in (0..first.n).step_by(columns) {
            let columns = start..(start + columns).min(first.n);
            // SAFETY: by the caller's promise.
            let plan = unsafe { Plan { right: Some(first.pack_right(columns.clone(), &panels)), ..*first } };
            // SAFETY: by the caller's promise.
            unsafe { run_parts(&plan, product, &[], 1, columns) }
        }
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe { run_parts(first, product, batch, count, 0..first.n) }
}

/// Computes some columns of the products, in parts of a grid.
///
/// # Safety
///
/// As for [`super::gemm_batched`].
unsafe fn run_parts<S: Kernels + GemmElement<Alpha = S::Sum>>(
    first: &Plan<'_, S>,
    product: &Gemm<S>,
    batch: &[BatchAxis],
    count: usize,
    columns: Range<usize>,
) {
    let (down, across) = first.grid_of(columns.len(), count, pool::num_threads());
    let tasks = count * down * across;
    let grain = ((PARALLEL / 4.0) / (first.operations() / (down * across) as f64)).ceil() as usize;
    let shared = Shared((*first, *product, columns));
    pool::parallel_for(tasks, grain, &|range: Range<usize>| {
        let (first, product, columns) = &{ &shared }.0;
        let (tall, wide) = (first.table.rows(), first.table.columns());
        for task in range {
            let (index, part) = (task / (down * across), task % (down * across));
            let part_rows = part_of(first.m, tall, down, part / across);
            let part_columns = part_of(columns.len(), wide, across, part % across);
            let part_columns = columns.start + part_columns.start..columns.start + part_columns.end;
            // SAFETY: each part of each result is one task, and the caller promises the rest.
            unsafe { first.at(product, batch, index).run_task(part_rows, part_columns) }
        }
    });
}

/// Part `index` of `parts` of `0..len`, in whole units.
pub(super) fn part_of(len: usize, unit: usize, parts: usize, index: usize) -> Range<usize> {
    let units = len.div_ceil(unit);
    let bound = |index: usize| (index * units / parts * unit).min(len);
    bound(index)..bound(index + 1)
}

impl<'a, S: Kernels> Plan<'a, S> {
    fn new(product: &Gemm<S>, table: &'static Table<S, S::Sum>) -> Plan<'a, S>
    where
        S: GemmElement<Alpha = S::Sum>,
    {
        let Gemm { m, n, k, a, b, c, alpha, accumulate, bias } = *product;
        let alpha = (alpha != S::ONE).then_some(alpha);
        let mut plan = Plan { m, n, k, a, b, c, alpha, accumulate, bias, table, indirect: None, right: None };
        if n == 1 || (m != 1 && c.column != 1 && c.row == 1) {
            plan.transpose();
        }
        plan
    }

    /// Turns the product into that of the transposed operands in reversed order.
    fn transpose(&mut self) {
        let flip = |x: Matrix<S>| Matrix { ptr: x.ptr, row: x.column, column: x.row };
        (self.m, self.n) = (self.n, self.m);
        (self.a, self.b) = (flip(self.b), flip(self.a));
        self.c = MatrixMut { ptr: self.c.ptr, row: self.c.column, column: self.c.row };
        self.bias = match self.bias {
            Bias::None => Bias::None,
            Bias::Columns(bias) => Bias::Rows(bias),
            Bias::Rows(bias) => Bias::Columns(bias),
        };
    }

    /// The same plan for another product of the batch.
    #[inline]
    fn at(&self, product: &Gemm<S>, batch: &[BatchAxis], index: usize) -> Plan<'a, S>
    where
        S: GemmElement<Alpha = S::Sum>,
    {
        if index == 0 { *self } else { Plan::new(&batch_item(product, batch, index), self.table) }
    }

    /// Additions and multiplications.
    pub(super) fn operations(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k.max(1) as f64
    }

    /// Whether the product is one of a vector and a matrix that `vecmat` can read in order.
    fn is_vector(&self) -> bool {
        self.m == 1 && (self.b.row == 1 || self.b.column == 1)
    }

    /// Whether tiles read the left operand where it lies.
    pub(super) fn left_in_place(&self, columns: usize) -> bool {
        if self.indirect.is_some() {
            return false;
        }
        if !S::SUMS_ITSELF || columns <= 2 * self.table.columns() {
            return S::SUMS_ITSELF;
        }
        // Lines a multiple of that apart compete for the same places in the cache.
        let line = match (self.a.row, self.a.column) {
            (line, 1) | (1, line) => line.unsigned_abs(),
            _ => return false,
        };
        let bytes = line * size_of::<S>();
        columns <= 512 && !bytes.is_multiple_of(1024)
    }

    /// Into how many parts the rows and the columns are cut: the grid with the least estimated time.
    pub(super) fn grid(&self, count: usize, threads: usize) -> (usize, usize) {
        self.grid_of(self.n, count, threads)
    }

    /// [`Plan::grid`] of the first `n` columns.
    fn grid_of(&self, n: usize, count: usize, threads: usize) -> (usize, usize) {
        if count >= 2 * threads {
            return (1, 1);
        }
        // Packing a number costs about as much as this many multiply-adds with it.
        const PACKING: f64 = 10.0;
        let table = self.table;
        let (tall, wide) = (self.m.div_ceil(table.rows()), n.div_ceil(table.columns()));
        let most = (4 * threads).div_ceil(count);
        let mut best = (f64::INFINITY, (1, 1));
        for down in 1..=most.min(tall) {
            for across in 1..=(most / down).min(wide) {
                let tasks = count * down * across;
                let rows = (tall.div_ceil(down) * table.rows()) as f64;
                let columns = (wide.div_ceil(across) * table.columns()) as f64;
                let left = if self.left_in_place(columns as usize) { 0.0 } else { PACKING };
                let right = if self.right.is_some() { 0.0 } else { PACKING };
                let each = rows * columns + left * rows + right * columns;
                // A few tasks more than threads even out what else goes on in the machine.
                let evenness = 1.0 + 0.05 * threads as f64 / tasks as f64;
                let time = tasks.div_ceil(threads) as f64 * each * evenness;
                if time < best.0 {
                    best = (time, (down, across));
                }
            }
        }
        best.1
    }
}
