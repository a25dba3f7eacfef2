//! How a floating-point product is cut into tasks for the threads, and a task into blocks for the caches.
//!
//! A task is a rectangle of the result. Within it, a block of the left operand (rows by a block of k) stays in
//! the second-level cache, packed or as it lies; for each panel of columns, the right operand's part is packed
//! into a buffer on the stack, which stays in the first-level cache while all tiles of the block use it.

use std::ops::Range;

use super::kernel::{Finish, Left};
use super::table::{Kernels, MAX_ROWS, MAX_VECTORS, Table};
use super::{BatchAxis, Bias, Gemm, GemmElement, Matrix, MatrixMut, Shared, batch_item, batch_len, scratch, vecmat};
use crate::pool;

/// The longest block of k.
const MAX_K_BLOCK: usize = 256;

/// Bytes of a full panel of the right operand: a block of k by two vectors of 64 bytes.
const PANEL_BYTES: usize = MAX_K_BLOCK * MAX_VECTORS * 64;

/// Columns of a task that are finished before the next, where sums wait in a buffer for their rounding.
const BUFFERED_COLUMNS: usize = 512;

/// Operations (two to a multiply-add) below which one thread is faster than several.
const PARALLEL: f64 = 1.0e6;

/// The length of the blocks of k, from k alone.
fn k_block(k: usize) -> usize {
    if k <= MAX_K_BLOCK { k } else { k.div_ceil(k.div_ceil(MAX_K_BLOCK)).next_multiple_of(8) }
}

/// A product with columns of the result adjacent wherever that can be, and how it is to be read.
struct Plan<S: Kernels> {
    m: usize,
    n: usize,
    k: usize,
    a: Matrix<S>,
    b: Matrix<S>,
    c: MatrixMut<S>,
    alpha: Option<S::Sum>,
    accumulate: bool,
    bias: Bias<S>,
    table: &'static Table<S, S::Sum>,
}

impl<S: Kernels> Clone for Plan<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Kernels> Copy for Plan<S> {}

/// # Safety
///
/// As for [`super::gemm_batched`].
pub(super) unsafe fn run<S: Kernels + GemmElement<Alpha = S::Sum>>(product: &Gemm<S>, batch: &[BatchAxis]) {
    if product.m == 0 || product.n == 0 {
        return;
    }
    let (mut product, mut batch) = (*product, batch);
    while let Some((axis, rest)) = batch.split_last()
        && fold(&mut product, axis)
    {
        batch = rest;
    }
    let count = batch_len(batch);
    if count == 0 {
        return;
    }
    let table = S::table_here();
    let plan = |item: &Gemm<S>| Plan::new(item, table);
    let first = plan(&product);
    // SAFETY: by the caller's promise; the tasks write disjoint parts of the results.
    unsafe {
        if first.is_vector() {
            for index in 0..count {
                run_vector(&plan(&batch_item(&product, batch, index)));
            }
            return;
        }
        let operations = 2.0 * product.m as f64 * product.n as f64 * product.k.max(1) as f64;
        if operations * (count as f64) < PARALLEL || pool::num_threads() == 1 || pool::in_parallel() {
            for index in 0..count {
                first.at(&batch_item(&product, batch, index)).run_task(0..first.m, 0..first.n);
            }
            return;
        }
        run_parallel(&first, &product, batch, count, operations);
    }
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
    first: &Plan<S>,
    product: &Gemm<S>,
    batch: &[BatchAxis],
    count: usize,
    operations: f64,
) {
    let (down, across) = first.grid(count, pool::num_threads());
    let tasks = count * down * across;
    let grain = ((PARALLEL / 4.0) / (operations / (down * across) as f64)).ceil() as usize;
    let shared = Shared((*first, *product));
    pool::parallel_for(tasks, grain, &|range: Range<usize>| {
        let (first, product) = &{ &shared }.0;
        let (rows, columns) = (first.table.rows(), first.table.columns());
        for task in range {
            let (index, part) = (task / (down * across), task % (down * across));
            let part_rows = part_of(first.m, rows, down, part / across);
            let part_columns = part_of(first.n, columns, across, part % across);
            // SAFETY: each part of each result is one task, and the caller promises the rest.
            unsafe { first.at(&batch_item(product, batch, index)).run_task(part_rows, part_columns) }
        }
    });
}

/// Part `index` of `parts` of `0..len`, in whole units.
fn part_of(len: usize, unit: usize, parts: usize, index: usize) -> Range<usize> {
    let units = len.div_ceil(unit);
    let bound = |index: usize| (index * units / parts * unit).min(len);
    bound(index)..bound(index + 1)
}

impl<S: Kernels> Plan<S> {
    fn new(product: &Gemm<S>, table: &'static Table<S, S::Sum>) -> Plan<S>
    where
        S: GemmElement<Alpha = S::Sum>,
    {
        let Gemm { m, n, k, a, b, c, alpha, accumulate, bias } = *product;
        let alpha = (alpha != S::ONE).then_some(alpha);
        let mut plan = Plan { m, n, k, a, b, c, alpha, accumulate, bias, table };
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
    fn at(&self, item: &Gemm<S>) -> Plan<S>
    where
        S: GemmElement<Alpha = S::Sum>,
    {
        Plan::new(item, self.table)
    }

    /// Whether the product is one of a vector and a matrix that `vecmat` can read in order.
    fn is_vector(&self) -> bool {
        self.m == 1 && (self.b.row == 1 || self.b.column == 1)
    }

    /// Whether tiles read the left operand where it lies.
    fn left_in_place(&self, columns: usize) -> bool {
        if !S::SUMS_ITSELF {
            return false;
        }
        let bytes = self.a.row.unsigned_abs() * size_of::<S>();
        columns <= 2 * self.table.columns() || (self.a.column == 1 && columns <= 512 && !bytes.is_multiple_of(1024))
    }

    /// Whether the tiles of a panel read the right operand where it lies.
    fn right_in_place(&self, rows: usize, width: usize) -> bool {
        S::SUMS_ITSELF && self.b.column == 1 && width.is_multiple_of(self.table.lanes) && rows <= 4 * self.table.rows()
    }

    /// Into how many parts the rows and the columns are cut: the grid with the least estimated time.
    fn grid(&self, count: usize, threads: usize) -> (usize, usize) {
        if count >= 2 * threads {
            return (1, 1);
        }
        // Packing a number costs about as much as this many multiply-adds with it.
        const PACKING: f64 = 10.0;
        let table = self.table;
        let (tall, wide) = (self.m.div_ceil(table.rows()), self.n.div_ceil(table.columns()));
        let most = (4 * threads).div_ceil(count);
        let mut best = (f64::INFINITY, (1, 1));
        for down in 1..=most.min(tall) {
            for across in 1..=(most / down).min(wide) {
                let tasks = count * down * across;
                let rows = (tall.div_ceil(down) * table.rows()) as f64;
                let columns = tall_columns(wide, across, table.columns());
                let left = if self.left_in_place(columns as usize) { 0.0 } else { PACKING };
                let each = rows * columns + left * rows + PACKING * columns;
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

    /// Computes a rectangle of the result.
    ///
    /// # Safety
    ///
    /// As for [`super::gemm`]; nothing else uses that part of the result.
    unsafe fn run_task(&self, rows: Range<usize>, columns: Range<usize>) {
        let table = self.table;
        let k_block = k_block(self.k);
        let in_place = self.left_in_place(columns.len());
        let buffered = !S::SUMS_ITSELF || self.c.column != 1;
        // Numbers in a packed step of a tile, whole vectors.
        let step = table.rows().next_multiple_of(table.lanes);
        let tile_bytes = step * k_block.max(1) * size_of::<S::Sum>();
        let tiles = rows.len().div_ceil(table.rows());
        let block_tiles = tiles.div_ceil(tiles.div_ceil((table.block_bytes / tile_bytes).max(1)));
        let block_rows = block_tiles * table.rows();
        let strip = if buffered { BUFFERED_COLUMNS.min(columns.len()) } else { columns.len() };
        let buffer_row = strip.next_multiple_of(table.lanes);
        let packed_bytes = if in_place { 0 } else { block_tiles * tile_bytes };
        let buffer_bytes = if buffered { block_rows * buffer_row * size_of::<S::Sum>() } else { 0 };
        scratch::with(packed_bytes.next_multiple_of(64) + buffer_bytes, |scratch| {
            let packed = (!in_place).then_some(scratch.cast::<S::Sum>());
            let buffer = scratch.wrapping_add(packed_bytes.next_multiple_of(64)).cast::<S::Sum>();
            for first_column in columns.clone().step_by(strip) {
                let columns = first_column..(first_column + strip).min(columns.end);
                for first_row in rows.clone().step_by(block_rows) {
                    let block = Block {
                        rows: first_row..(first_row + block_rows).min(rows.end),
                        columns: columns.clone(),
                        packed,
                        step,
                        buffer: buffered.then_some((buffer, buffer_row as isize)),
                    };
                    // SAFETY: the block is a part of the task; its memory is as large as computed above.
                    unsafe { self.run_block(&block, k_block) }
                }
            }
        });
    }
}

fn tall_columns(wide: usize, across: usize, columns: usize) -> f64 {
    (wide.div_ceil(across) * columns) as f64
}

/// A rectangle of the result whose left operand stays in the second-level cache.
struct Block<E> {
    rows: Range<usize>,
    columns: Range<usize>,
    /// Where the left operand is packed, unless it is read in place.
    packed: Option<*mut E>,
    /// Numbers in a packed step of a tile.
    step: usize,
    /// Where sums wait, and the length of its rows, unless they go to the result directly.
    buffer: Option<(*mut E, isize)>,
}

/// The rows of tile `index` of a block: all tiles have nearly the same height.
fn tile_rows(rows: usize, most: usize, index: usize) -> Range<usize> {
    let tiles = rows.div_ceil(most);
    index * rows / tiles..(index + 1) * rows / tiles
}

#[repr(align(64))]
struct Panel(std::mem::MaybeUninit<[u8; PANEL_BYTES]>);

impl<S: Kernels> Plan<S> {
    /// # Safety
    ///
    /// As for [`Plan::run_task`]; the memory of the block is large enough.
    unsafe fn run_block(&self, block: &Block<S::Sum>, k_block: usize) {
        let mut panel = Panel(std::mem::MaybeUninit::uninit());
        let panel = panel.0.as_mut_ptr().cast::<S::Sum>();
        let mut first = 0;
        // At least once, so that an empty sum is stored as well.
        loop {
            let steps = first..(first + k_block).min(self.k);
            let (is_first, is_last) = (first == 0, steps.end == self.k);
            first = steps.end;
            // SAFETY: within the block, as promised.
            unsafe {
                if let Some(packed) = block.packed {
                    self.pack_left(block, &steps, packed);
                }
                for column in block.columns.clone().step_by(self.table.columns()) {
                    let width = self.table.columns().min(block.columns.end - column);
                    self.run_panel(block, &steps, column..column + width, panel, is_first, is_last);
                }
            }
            if is_last {
                break;
            }
        }
        if let Some((buffer, buffer_row)) = block.buffer {
            // SAFETY: the buffer holds the block's sums now.
            unsafe { self.store(block, buffer, buffer_row) }
        }
    }

    /// # Safety
    ///
    /// As for [`Plan::run_block`].
    unsafe fn pack_left(&self, block: &Block<S::Sum>, steps: &Range<usize>, packed: *mut S::Sum) {
        let most = self.table.rows();
        for index in 0..block.rows.len().div_ceil(most) {
            let tile = tile_rows(block.rows.len(), most, index);
            let from = (block.rows.start + tile.start) as isize * self.a.row + steps.start as isize * self.a.column;
            // SAFETY: the tile's rows and steps are in the operand, and its place is in the packed block.
            unsafe {
                let to = packed.add(index * block.step * steps.len());
                (self.table.pack)(self.a.ptr.offset(from), self.a.row, self.a.column, tile.len(), steps.len(), to, block.step);
            }
        }
    }

    /// All tiles of a block in one panel of columns, for one block of k.
    ///
    /// # Safety
    ///
    /// As for [`Plan::run_block`].
    unsafe fn run_panel(
        &self,
        block: &Block<S::Sum>,
        steps: &Range<usize>,
        columns: Range<usize>,
        panel: *mut S::Sum,
        is_first: bool,
        is_last: bool,
    ) {
        let table = self.table;
        let width = columns.len();
        let vectors = width.div_ceil(table.lanes);
        let from = self.b.ptr.wrapping_offset(steps.start as isize * self.b.row + columns.start as isize * self.b.column);
        // SAFETY: the panel holds a whole one; everything else is in the operands and the block.
        unsafe {
            let (b, b_row) = if self.right_in_place(block.rows.len(), width) {
                (from.cast::<S::Sum>(), self.b.row)
            } else {
                (table.pack)(from, self.b.column, self.b.row, width, steps.len(), panel, table.columns());
                (panel.cast_const(), table.columns() as isize)
            };
            let column_bias = is_last.then(|| self.column_bias(&columns)).flatten();
            for index in 0..block.rows.len().div_ceil(table.rows()) {
                let tile = tile_rows(block.rows.len(), table.rows(), index);
                let row = block.rows.start + tile.start;
                let left = match block.packed {
                    Some(packed) => {
                        let ptr = packed.add(index * block.step * steps.len()).cast_const();
                        Left { ptr, row: 1, column: block.step as isize }
                    }
                    None => {
                        let from = row as isize * self.a.row + steps.start as isize * self.a.column;
                        let ptr = self.a.ptr.wrapping_offset(from).cast::<S::Sum>();
                        Left { ptr, row: self.a.row, column: self.a.column }
                    }
                };
                let (c, c_row) = match block.buffer {
                    Some((buffer, buffer_row)) => {
                        let at = tile.start as isize * buffer_row + (columns.start - block.columns.start) as isize;
                        (buffer.offset(at), buffer_row)
                    }
                    None => {
                        let at = row as isize * self.c.row + columns.start as isize;
                        (self.c.ptr.offset(at).cast::<S::Sum>(), self.c.row)
                    }
                };
                let row_bias = is_last.then(|| self.row_bias(row..row + tile.len())).flatten();
                let finish = Finish {
                    alpha: self.alpha,
                    accumulate: !is_first || (self.accumulate && block.buffer.is_none()),
                    column_bias: column_bias.as_ref().map_or(std::ptr::null(), |bias| bias.as_ptr()),
                    row_bias: row_bias.as_ref().map_or(std::ptr::null(), |bias| bias.as_ptr()),
                };
                table.tiles[vectors - 1][tile.len() - 1](steps.len(), left, b, b_row, c, c_row, width, &finish);
            }
        }
    }

    /// # Safety
    ///
    /// The columns are in the product.
    unsafe fn column_bias(&self, columns: &Range<usize>) -> Option<[S::Sum; MAX_VECTORS * 16]> {
        let Bias::Columns(bias) = self.bias else {
            return None;
        };
        let mut widened = [S::Sum::default(); MAX_VECTORS * 16];
        for (to, column) in widened.iter_mut().zip(columns.clone()) {
            // SAFETY: by the caller's promise.
            *to = unsafe { *bias.add(column) }.widened();
        }
        Some(widened)
    }

    /// # Safety
    ///
    /// The rows are in the product.
    unsafe fn row_bias(&self, rows: Range<usize>) -> Option<[S::Sum; MAX_ROWS]> {
        let Bias::Rows(bias) = self.bias else {
            return None;
        };
        let mut widened = [S::Sum::default(); MAX_ROWS];
        for (to, row) in widened.iter_mut().zip(rows) {
            // SAFETY: by the caller's promise.
            *to = unsafe { *bias.add(row) }.widened();
        }
        Some(widened)
    }

    /// Rounds the sums of a block and stores them.
    ///
    /// # Safety
    ///
    /// As for [`Plan::run_block`]; the buffer holds the sums.
    unsafe fn store(&self, block: &Block<S::Sum>, buffer: *const S::Sum, buffer_row: isize) {
        for (index, row) in block.rows.clone().enumerate() {
            let at = row as isize * self.c.row + block.columns.start as isize * self.c.column;
            // SAFETY: the row is in the block.
            unsafe {
                let from = buffer.offset(index as isize * buffer_row);
                self.store_row(from, self.c.ptr.offset(at), block.columns.len());
            }
        }
    }

    /// Rounds `count` sums and stores them at columns of the result that begin at `c`.
    ///
    /// # Safety
    ///
    /// The sums are readable, the columns writable.
    unsafe fn store_row(&self, from: *const S::Sum, c: *mut S, count: usize) {
        // SAFETY: by the caller's promise.
        unsafe {
            if self.c.column == 1 {
                return (self.table.store_row)(from, c, count, self.accumulate);
            }
            for j in 0..count {
                let c = c.offset(j as isize * self.c.column);
                (self.table.store_row)(from.add(j), c, 1, self.accumulate);
            }
        }
    }
}

/// Columns of a product with a vector that are finished before the next, in a buffer on the stack.
const VECTOR_COLUMNS: usize = 2048;

/// Elements of the matrix that are worth a thread, of a product with a vector.
const VECTOR_GRAIN: usize = 64 << 10;

/// A product whose left operand is one row.
///
/// # Safety
///
/// As for [`super::gemm`]; [`Plan::is_vector`].
unsafe fn run_vector<S: Kernels>(plan: &Plan<S>) {
    // SAFETY: the vector is in the operand; the scratch memory has its size.
    unsafe {
        if S::SUMS_ITSELF && plan.a.column == 1 {
            return run_columns(plan, plan.a.ptr.cast());
        }
        scratch::with(plan.k * size_of::<S::Sum>(), |x| {
            let x = x.cast::<S::Sum>();
            (0..plan.k).for_each(|p| *x.add(p) = (*plan.a.ptr.offset(p as isize * plan.a.column)).widened());
            run_columns(plan, x);
        });
    }
}

/// # Safety
///
/// As for [`run_vector`]; `x` is the left operand, widened.
unsafe fn run_columns<S: Kernels>(plan: &Plan<S>, x: *const S::Sum) {
    let grain = VECTOR_GRAIN.div_ceil(plan.k.max(1)).next_multiple_of(64);
    let shared = Shared((*plan, x));
    pool::parallel_for(plan.n, grain, &|range: Range<usize>| {
        let (plan, x) = { &shared }.0;
        let mut sums = [S::Sum::default(); VECTOR_COLUMNS];
        for first in range.clone().step_by(VECTOR_COLUMNS) {
            let count = VECTOR_COLUMNS.min(range.end - first);
            let sums = &mut sums[..count];
            // SAFETY: the columns are in the operands, and no other range has them.
            unsafe {
                let from = plan.b.ptr.offset(first as isize * plan.b.column);
                if plan.b.row == 1 {
                    (plan.table.dot_lines)(from, plan.b.column, x, sums.as_mut_ptr(), count, plan.k);
                } else {
                    (plan.table.sum_steps)(from, plan.b.row, x, sums.as_mut_ptr(), count, plan.k);
                }
                vecmat::finish(sums, plan.alpha, plan.bias, first);
                plan.store_row(sums.as_ptr(), plan.c.ptr.offset(first as isize * plan.c.column), count);
            }
        }
    });
}
