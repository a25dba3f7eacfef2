//! A task: a rectangle of the result, computed by one thread in blocks for the caches.
//!
//! A block of the left operand (rows by a block of k) stays in the second-level cache, packed or as it lies. For
//! each panel of columns, the part of the right operand is packed into a buffer on the stack, from which all
//! tiles of the block read it.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::driver::{Plan, k_block};
use super::kernel::{Finish, Left, prefetch_far};
use super::table::{Kernels, MAX_K_BLOCK, MAX_ROWS, MAX_VECTORS};
use super::{Bias, scratch};

/// Bytes of the largest panel of the right operand: a block of k by two vectors of 64 bytes.
const PANEL_BYTES: usize = MAX_K_BLOCK * MAX_VECTORS * 64;

/// Multiply-adds of a small product.
const SMALL: usize = 16 << 10;

/// Bytes of a panel of a product that fits the first-level cache several times over.
const SMALL_PANEL_BYTES: usize = 4 << 10;

/// Columns that are finished before the next, where sums wait in a buffer for their rounding.
const BUFFERED_COLUMNS: usize = 512;

/// A right operand of so few tiles of rows is not packed: each number would be copied for a few uses.
const UNPACKED_TILES: usize = 4;

const CACHE_LINE: usize = 64;

/// A rectangle of the result whose left operand stays in the second-level cache.
struct Block<E> {
    rows: Range<usize>,
    columns: Range<usize>,
    tiles: Tiles,
    /// Where the left operand is packed, unless it is read in place.
    packed: Option<*mut E>,
    /// Numbers in a packed step of a tile.
    step: usize,
    /// Where sums wait, and the length of its rows, unless they go to the result directly.
    buffer: Option<(*mut E, isize)>,
    /// Where panels of the right operand are packed.
    panel: *mut E,
}

/// Rows cut into tiles of nearly the same height, the taller ones first.
struct Tiles {
    count: usize,
    height: usize,
    /// How many of them have one row more.
    taller: usize,
}

impl Tiles {
    /// As few tiles as `most` rows a tile allow.
    fn new(rows: usize, most: usize) -> Tiles {
        let count = rows.div_ceil(most);
        Tiles { count, height: rows / count, taller: rows % count }
    }

    #[inline]
    fn rows(&self, index: usize) -> Range<usize> {
        let start = index * self.height + index.min(self.taller);
        start..start + self.height + usize::from(index < self.taller)
    }
}

#[repr(align(64))]
struct Panel<const BYTES: usize>(MaybeUninit<[u8; BYTES]>);

impl<const BYTES: usize> Panel<BYTES> {
    fn new() -> Self {
        Panel(MaybeUninit::uninit())
    }
}

/// One block of k.
struct Steps {
    range: Range<usize>,
    is_first: bool,
    is_last: bool,
}

impl<S: Kernels> Plan<'_, S> {
    /// Whether the product is so small that deciding how to compute it would take longer than to do so.
    pub(super) fn is_small(&self) -> bool {
        let fits = self.k.saturating_mul(self.table.columns() * size_of::<S::Sum>()) <= SMALL_PANEL_BYTES;
        let operations = self.m.saturating_mul(self.n).saturating_mul(self.k);
        S::SUMS_ITSELF && fits && operations <= SMALL && self.c.column == 1 && matches!(self.bias, Bias::None)
    }

    /// Computes a product that [`Plan::is_small`].
    ///
    /// # Safety
    ///
    /// As for [`super::gemm`].
    pub(super) unsafe fn run_small(&self) {
        let table = self.table;
        let (rows, columns) = (table.rows(), table.columns());
        let mut panel = Panel::<SMALL_PANEL_BYTES>::new();
        let panel = panel.0.as_mut_ptr().cast::<S::Sum>();
        let finish = Finish { alpha: self.alpha, accumulate: self.accumulate, column_bias: std::ptr::null(), row_bias: std::ptr::null() };
        for column in (0..self.n).step_by(columns) {
            let width = columns.min(self.n - column);
            let tile_fns = table.tiles[usize::from(width > table.lanes)];
            let from = self.b.ptr.wrapping_offset(column as isize * self.b.column);
            // SAFETY: all in the operands; the panel has room for `k` rows.
            unsafe {
                let (b, b_row) = if self.b.column == 1 && width.is_multiple_of(table.lanes) {
                    (from.cast::<S::Sum>(), self.b.row)
                } else {
                    (table.pack)(from, self.b.column, self.b.row, width, self.k, panel, columns);
                    (panel.cast_const(), columns as isize)
                };
                for row in (0..self.m).step_by(rows) {
                    let ptr = self.a.ptr.wrapping_offset(row as isize * self.a.row).cast::<S::Sum>();
                    let left = Left { ptr, row: self.a.row, column: self.a.column };
                    let c = self.c.ptr.wrapping_offset(row as isize * self.c.row).wrapping_add(column).cast();
                    let height = rows.min(self.m - row);
                    tile_fns[height - 1](self.k, left, b, b_row, c, self.c.row, width, &finish);
                }
            }
        }
    }

    /// Computes a rectangle of the result.
    ///
    /// # Safety
    ///
    /// As for [`super::gemm`]; nothing else uses that part of the result.
    pub(super) unsafe fn run_task(&self, rows: Range<usize>, columns: Range<usize>) {
        let panel_bytes = self.k.saturating_mul(self.table.columns() * size_of::<S::Sum>());
        // SAFETY: as promised; the panel is as large as `panel_bytes`, or as any panel.
        unsafe {
            if panel_bytes <= SMALL_PANEL_BYTES {
                self.run_with_panel::<SMALL_PANEL_BYTES>(rows, columns);
            } else {
                self.run_with_panel::<PANEL_BYTES>(rows, columns);
            }
        }
    }

    /// Apart for each size, so that a small product does not touch the stack of a large one.
    ///
    /// # Safety
    ///
    /// As for [`Plan::run_task`]; a panel of so many bytes has room for a block of k.
    #[inline(never)]
    unsafe fn run_with_panel<const BYTES: usize>(&self, rows: Range<usize>, columns: Range<usize>) {
        let mut panel = Panel::<BYTES>::new();
        // SAFETY: as promised.
        unsafe { self.run_blocks(rows, columns, panel.0.as_mut_ptr().cast()) }
    }

    /// # Safety
    ///
    /// As for [`Plan::run_task`]; the panel has room for a block of k.
    unsafe fn run_blocks(&self, rows: Range<usize>, columns: Range<usize>, panel: *mut S::Sum) {
        let table = self.table;
        let k_block = k_block(self.k, table.k_block);
        let in_place = self.left_in_place(columns.len());
        let buffered = !S::SUMS_ITSELF || self.c.column != 1 || self.indirect.is_some();
        // Numbers in a packed step of a tile, whole vectors.
        let step = table.rows().next_multiple_of(table.lanes);
        let tile_bytes = step * k_block.max(1) * size_of::<S::Sum>();
        let mut block_tiles = rows.len().div_ceil(table.rows());
        if block_tiles * tile_bytes > table.block_bytes {
            block_tiles = block_tiles.div_ceil(block_tiles.div_ceil((table.block_bytes / tile_bytes).max(1)));
        }
        let block_rows = (block_tiles * table.rows()).min(rows.len());
        let strip = if buffered { BUFFERED_COLUMNS.min(columns.len()) } else { columns.len() };
        // Panels that several blocks read are packed once for all of them.
        let repeated = self.right.is_none() && rows.len() > block_rows;
        let panels = repeated.then(|| self.packed_columns(columns.len())).flatten().and_then(|columns| self.panels(strip.min(columns)));
        let strip = panels.as_ref().map_or(strip, |panels| panels.columns);
        let buffer_row = strip.next_multiple_of(table.lanes);
        let packed_bytes = if in_place { 0 } else { block_tiles * tile_bytes };
        let buffer_bytes = if buffered { block_rows * buffer_row * size_of::<S::Sum>() } else { 0 };
        scratch::with(packed_bytes + buffer_bytes, |scratch| {
            let scratch = scratch.cast::<S::Sum>();
            let buffer = scratch.wrapping_byte_add(packed_bytes);
            for first_column in columns.clone().step_by(strip) {
                let mut plan = *self;
                if let Some(panels) = &panels {
                    let columns = first_column..(first_column + strip).min(columns.end);
                    // SAFETY: the columns are in the operand, as promised.
                    plan.right = Some(unsafe { self.pack_right(columns, panels) });
                }
                for first_row in rows.clone().step_by(block_rows) {
                    let rows = first_row..(first_row + block_rows).min(rows.end);
                    let block = Block {
                        tiles: Tiles::new(rows.len(), table.rows()),
                        rows,
                        columns: first_column..(first_column + strip).min(columns.end),
                        packed: (!in_place).then_some(scratch),
                        step,
                        buffer: buffered.then_some((buffer, buffer_row as isize)),
                        panel,
                    };
                    // SAFETY: the block is a part of the task; its memory is as large as computed above.
                    unsafe { plan.run_block(&block, k_block) }
                }
            }
        });
    }

    /// # Safety
    ///
    /// As for [`Plan::run_task`]; the memory of the block is large enough.
    unsafe fn run_block(&self, block: &Block<S::Sum>, k_block: usize) {
        let columns = self.table.columns();
        let mut first = 0;
        // At least once, so that an empty sum is stored as well.
        loop {
            let range = first..(first + k_block).min(self.k);
            let steps = Steps { is_first: first == 0, is_last: range.end == self.k, range };
            // SAFETY: within the block, as promised.
            unsafe {
                if let Some(packed) = block.packed {
                    self.pack_left(block, &steps.range, packed);
                }
                for column in block.columns.clone().step_by(columns) {
                    self.run_panel(block, &steps, column..(column + columns).min(block.columns.end));
                }
            }
            if steps.is_last {
                break;
            }
            first = steps.range.end;
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
        let first = block.rows.start as isize * self.a.row + steps.start as isize * self.a.column;
        for index in 0..block.tiles.count {
            let tile = block.tiles.rows(index);
            // SAFETY: the tile's rows and steps are in the operand, and its place is in the packed block.
            unsafe {
                let to = packed.add(index * block.step * steps.len());
                if let Some(operands) = self.indirect {
                    let rows = block.rows.start + tile.start..block.rows.start + tile.end;
                    operands.pack_left(self.table, rows, steps.clone(), to, block.step);
                    continue;
                }
                let from = self.a.ptr.offset(first + tile.start as isize * self.a.row);
                (self.table.pack)(from, self.a.row, self.a.column, tile.len(), steps.len(), to, block.step);
            }
        }
    }

    /// All tiles of a block in one panel of columns, for one block of k.
    ///
    /// # Safety
    ///
    /// As for [`Plan::run_block`].
    unsafe fn run_panel(&self, block: &Block<S::Sum>, steps: &Steps, columns: Range<usize>) {
        let table = self.table;
        let (width, k) = (columns.len(), steps.range.len());
        let tile_fns = table.tiles[width.div_ceil(table.lanes) - 1];
        // SAFETY: the panel holds a whole one; everything else is in the operands and the block.
        unsafe {
            let (b, b_row) = self.right_panel(block, steps, &columns);
            let next = self.next_panel(block, steps, &columns);
            let column_bias = self.column_bias(steps, &columns);
            let (left, left_tile, left_row) = self.left(block, steps);
            let (c, c_row) = self.target(block, &columns);
            let mut finish = Finish {
                alpha: self.alpha,
                accumulate: !steps.is_first || (self.accumulate && block.buffer.is_none()),
                column_bias: column_bias.as_ref().map_or(std::ptr::null(), |bias| bias.as_ptr()),
                row_bias: std::ptr::null(),
            };
            for index in 0..block.tiles.count {
                let tile = block.tiles.rows(index);
                next.prefetch(index, block.tiles.count);
                let row_bias = self.row_bias(steps, block.rows.start + tile.start, tile.len());
                finish.row_bias = row_bias.as_ref().map_or(std::ptr::null(), |bias| bias.as_ptr());
                let at = index as isize * left_tile + tile.start as isize * left_row;
                let left = Left { ptr: left.ptr.wrapping_offset(at), ..left };
                let c = c.wrapping_offset(tile.start as isize * c_row);
                tile_fns[tile.len() - 1](k, left, b, b_row, c, c_row, width, &finish);
            }
        }
    }

    /// The left operand of a block's first row, how far apart its tiles are beyond their rows, and its rows.
    fn left(&self, block: &Block<S::Sum>, steps: &Steps) -> (Left<S::Sum>, isize, isize) {
        match block.packed {
            Some(packed) => {
                let left = Left { ptr: packed.cast_const(), row: 1, column: block.step as isize };
                (left, (block.step * steps.range.len()) as isize, 0)
            }
            None => {
                let first = block.rows.start as isize * self.a.row + steps.range.start as isize * self.a.column;
                let ptr = self.a.ptr.wrapping_offset(first).cast::<S::Sum>();
                (Left { ptr, row: self.a.row, column: self.a.column }, 0, self.a.row)
            }
        }
    }

    /// Where the tiles of a panel begin to store, and the distance of rows there.
    fn target(&self, block: &Block<S::Sum>, columns: &Range<usize>) -> (*mut S::Sum, isize) {
        match block.buffer {
            Some((buffer, row)) => (buffer.wrapping_add(columns.start - block.columns.start), row),
            None => {
                let first = block.rows.start as isize * self.c.row + columns.start as isize;
                (self.c.ptr.wrapping_offset(first).cast(), self.c.row)
            }
        }
    }

    /// The right operand of a panel, packed or in place, and the distance of its rows.
    ///
    /// # Safety
    ///
    /// As for [`Plan::run_block`].
    unsafe fn right_panel(&self, block: &Block<S::Sum>, steps: &Steps, columns: &Range<usize>) -> (*const S::Sum, isize) {
        let table = self.table;
        if let Some(operands) = self.indirect {
            // SAFETY: as below.
            unsafe { operands.pack_right(table, columns.clone(), steps.range.clone(), block.panel, table.columns()) };
            return (block.panel, table.columns() as isize);
        }
        if let Some(right) = self.right {
            return (right.at(columns.start, steps.range.start, self.k, table.columns()), table.columns() as isize);
        }
        let from = self.right_at(steps, columns.start);
        let whole = columns.len().is_multiple_of(table.lanes);
        if S::SUMS_ITSELF && self.b.column == 1 && whole && block.tiles.count <= UNPACKED_TILES {
            return (from.cast(), self.b.row);
        }
        let (line, step, k) = (self.b.column, self.b.row, steps.range.len());
        // SAFETY: the columns and steps are in the operand, and the panel has room for them.
        unsafe { (table.pack)(from, line, step, columns.len(), k, block.panel, table.columns()) };
        (block.panel, table.columns() as isize)
    }

    fn right_at(&self, steps: &Steps, column: usize) -> *const S {
        self.b.ptr.wrapping_offset(steps.range.start as isize * self.b.row + column as isize * self.b.column)
    }

    /// What the panel after this one will be packed from.
    fn next_panel(&self, block: &Block<S::Sum>, steps: &Steps, columns: &Range<usize>) -> Lines {
        let wide = self.table.columns();
        let width = wide.min(block.columns.end - columns.end);
        if let Some(right) = self.right {
            let from = right.at(columns.end, steps.range.start, self.k, wide).cast::<u8>();
            let bytes = if width > 0 { steps.range.len() * wide * size_of::<S::Sum>() } else { 0 };
            return Lines { from, line: CACHE_LINE as isize, count: bytes / CACHE_LINE, bytes: CACHE_LINE as isize };
        }
        let from = self.right_at(steps, columns.end).cast::<u8>();
        let bytes = |count: isize| count * size_of::<S>() as isize;
        match (self.b.row, self.b.column) {
            _ if self.indirect.is_some() => Lines { from, line: 0, count: 0, bytes: 0 },
            (row, 1) => Lines { from, line: bytes(row), count: steps.range.len(), bytes: bytes(width as isize) },
            (1, column) => Lines { from, line: bytes(column), count: width, bytes: bytes(steps.range.len() as isize) },
            _ => Lines { from, line: 0, count: 0, bytes: 0 },
        }
    }

    /// # Safety
    ///
    /// The columns are in the product.
    unsafe fn column_bias(&self, steps: &Steps, columns: &Range<usize>) -> Option<[S::Sum; MAX_VECTORS * 16]> {
        let (Bias::Columns(bias), true) = (self.bias, steps.is_last) else {
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
    unsafe fn row_bias(&self, steps: &Steps, first: usize, count: usize) -> Option<[S::Sum; MAX_ROWS]> {
        let (Bias::Rows(bias), true) = (self.bias, steps.is_last) else {
            return None;
        };
        let mut widened = [S::Sum::default(); MAX_ROWS];
        for (to, row) in widened.iter_mut().zip(first..first + count) {
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
                if let Some(operands) = self.indirect {
                    operands.store(row, block.columns.clone(), from);
                    continue;
                }
                self.store_row(from, self.c.ptr.offset(at), block.columns.len());
            }
        }
    }

    /// Rounds `count` sums and stores them at columns of the result that begin at `c`.
    ///
    /// # Safety
    ///
    /// The sums are readable, the columns writable.
    pub(super) unsafe fn store_row(&self, from: *const S::Sum, c: *mut S, count: usize) {
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

/// Memory that will be wanted soon: `count` lines of some bytes each.
struct Lines {
    from: *const u8,
    line: isize,
    count: usize,
    bytes: isize,
}

impl Lines {
    /// Asks for part `index` of `parts`.
    #[inline]
    fn prefetch(&self, index: usize, parts: usize) {
        // Few tiles have no time to spare.
        if parts < 2 * UNPACKED_TILES {
            return;
        }
        let each = self.count.div_ceil(parts);
        for line in (index * each).min(self.count)..((index + 1) * each).min(self.count) {
            let line = self.from.wrapping_offset(line as isize * self.line);
            for at in (0..self.bytes).step_by(CACHE_LINE) {
                prefetch_far(line.wrapping_offset(at));
            }
        }
    }
}
