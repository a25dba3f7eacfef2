//! Running a plan over memory, tile by tile.

use super::blocks::{self, Block, Blocks};
use super::gather;
use super::iterate::{Cursor, Space};
use super::plan::{Inst, Plan};
use super::small::fill;
use super::step::Class;
use crate::{alloc, pool};
use flambeau_base::{DType, Error, Result, Scalar};
use flambeau_engine::backend::Operand;
use flambeau_ir::Constant;
use smallvec::SmallVec;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How much of the first-level cache the registers of a call may take.
const TILE_BYTES: usize = 24 << 10;
/// Rows shorter than this share a tile.
const SHORT_ROW: usize = 256;
/// Elements that are worth another thread, of one simple step and of long programs.
const GRAIN: usize = 32 << 10;
const LONG_GRAIN: usize = 4 << 10;

/// One operand of a call: outputs come first.
struct Arg {
    ptr: *mut u8,
    size: usize,
    /// The slot of the plan that reads or writes it.
    slot: usize,
    output: bool,
}

/// How a tile reaches an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// In place.
    Direct,
    /// One element, spread over a buffer once.
    Single,
    /// Through a buffer.
    Buffer,
}

/// A plan on operands.
pub struct Call<'a> {
    plan: &'a Plan,
    params: &'a [Scalar],
    space: Space,
    args: SmallVec<[Arg; 4]>,
    access: SmallVec<[Access; 4]>,
    /// Tiles span several rows.
    across: bool,
    /// Tiles are blocks of two dimensions.
    blocks: Option<Blocks>,
    tile: usize,
}

/// Set where a divisor was zero; a memory error is kept as well.
const ZERO_DIVISOR: u8 = 1;
/// See [`outcome`].
pub const NO_MEMORY: u8 = 2;

/// What the parts of a call found, as a result.
pub fn outcome(failed: u8) -> Result<()> {
    match failed {
        0 => Ok(()),
        f if f & NO_MEMORY != 0 => Err(Error::runtime("cannot allocate memory for a kernel's tiles")),
        _ => Err(Error::runtime("ZeroDivisionError: an integer was divided by zero")),
    }
}

// SAFETY: the pointers are those of a kernel call, whose memory is the call's to read and write; parallel parts
// touch different elements of the outputs.
unsafe impl Sync for Call<'_> {}

impl<'a> Call<'a> {
    /// A call of a plan.
    pub fn new(plan: &'a Plan, params: &'a [Scalar], sizes: &[usize], outputs: &[Operand], inputs: &[Operand]) -> Call<'a> {
        let first_output = inputs.len();
        let outs = outputs.iter().enumerate().map(|(j, o)| Arg { ptr: o.ptr, size: o.dtype.size(), slot: first_output + j, output: true });
        let ins = inputs.iter().enumerate().map(|(i, o)| Arg { ptr: o.ptr, size: o.dtype.size(), slot: i, output: false });
        let args: SmallVec<[Arg; 4]> = outs.chain(ins).collect();
        let shapes: SmallVec<[(&[isize], usize); 4]> = outputs.iter().chain(inputs).map(|o| (o.strides, o.dtype.size())).collect();
        let space = Space::new(sizes, &shapes);
        // Squares of a cache line's length or two.
        let elements = if args.iter().all(|a| a.size <= 2) { 64 * 64 } else { 32 * 32 };
        let blocks = Blocks::of(&space, args.iter().map(|a| a.size), elements);
        let across = space.sizes.len() > 1 && space.inner() < SHORT_ROW;
        Call::over(plan, params, space, args, across, blocks)
    }

    /// A call of a plan that keeps its results, over a space whose first operands are the inputs.
    pub fn for_results(plan: &'a Plan, params: &'a [Scalar], space: Space, inputs: &[Operand]) -> Call<'a> {
        let args = inputs.iter().enumerate().map(|(i, o)| Arg { ptr: o.ptr, size: o.dtype.size(), slot: i, output: false }).collect();
        let across = space.sizes.len() > 1;
        Call::over(plan, params, space, args, across, None)
    }

    fn over(
        plan: &'a Plan,
        params: &'a [Scalar],
        space: Space,
        args: SmallVec<[Arg; 4]>,
        across: bool,
        blocks: Option<Blocks>,
    ) -> Call<'a> {
        let access = args.iter().enumerate().map(|(k, arg)| access(&space, k, arg, across, blocks.is_some())).collect();
        let mut call = Call { plan, params, space, args, access, across, blocks, tile: usize::MAX };
        call.tile = call.tile_length();
        call
    }

    fn buffers(&self) -> usize {
        self.access.iter().filter(|a| **a != Access::Direct).count()
    }

    fn tile_length(&self) -> usize {
        let held = self.plan.registers + self.buffers();
        if held == 0 {
            return usize::MAX;
        }
        (TILE_BYTES / (held * self.width())).clamp(128, 1024) & !31
    }

    /// Bytes an element of the widest register or buffer.
    fn width(&self) -> usize {
        self.args.iter().map(|a| a.size).max().unwrap_or(1).max(self.plan.width)
    }

    /// Runs it. `RuntimeError` where an integer is divided by zero.
    ///
    /// # Safety
    /// NOTE [kernel contract] of the engine.
    pub unsafe fn run(&self) -> Result<()> {
        let failed = AtomicU8::new(0);
        let grain = (2 * GRAIN / self.plan.cost.max(2)).max(LONG_GRAIN);
        match &self.blocks {
            Some(blocks) => pool::parallel_for(blocks.count(&self.space), grain.div_ceil(blocks.elements()), &|range| {
                // SAFETY: the caller's; ranges are parts of the space.
                failed.fetch_or(unsafe { self.run_blocks(blocks, range) }, Relaxed);
            }),
            None => pool::parallel_for(self.space.numel, grain, &|range| {
                // SAFETY: as above.
                failed.fetch_or(unsafe { self.run_range(range) }, Relaxed);
            }),
        }
        outcome(failed.into_inner())
    }

    /// The iteration space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    unsafe fn run_blocks(&self, blocks: &Blocks, range: Range<usize>) -> u8 {
        let Ok(mut worker) = Worker::new(self, blocks.elements()) else { return NO_MEMORY };
        let space = &self.space;
        let mut failure = 0;
        // SAFETY: the caller's; blocks are inside the space, and buffers hold one.
        unsafe {
            worker.rebase(&[]);
            for i in range {
                let block = blocks.at(space, i);
                let [rows, columns] = block.size;
                if self.plan.moves {
                    self.move_block(blocks, &block);
                    continue;
                }
                for (k, arg) in self.args.iter().enumerate().filter(|(k, a)| !a.output && self.access[*k] == Access::Buffer) {
                    let from = arg.ptr.wrapping_offset(block.shifts[k]);
                    let step = (columns * arg.size) as isize;
                    blocks::read(worker.slots[arg.slot], step, from, blocks.strides(space, k), arg.size, block.size);
                }
                failure |= worker.execute(rows * columns);
                for (k, arg) in self.args.iter().enumerate().filter(|(_, a)| a.output) {
                    let to = arg.ptr.wrapping_offset(block.shifts[k]);
                    blocks::write(to, worker.slots[arg.slot], blocks.strides(space, k), arg.size, block.size);
                }
            }
        }
        failure
    }

    /// Moves a block of the one input to the one output, along the output's memory.
    unsafe fn move_block(&self, blocks: &Blocks, block: &Block) {
        let (out, from) = (&self.args[0], &self.args[1]);
        let (to_strides, from_strides) = (blocks.strides(&self.space, 0), blocks.strides(&self.space, 1));
        let to = out.ptr.wrapping_offset(block.shifts[0]);
        let source = from.ptr.wrapping_offset(block.shifts[1]);
        let [rows, columns] = block.size;
        // SAFETY: the caller's.
        unsafe {
            if to_strides[1] == out.size as isize {
                blocks::read(to, to_strides[0], source, from_strides, out.size, block.size);
            } else if to_strides[0] == out.size as isize {
                blocks::read(to, to_strides[1], source, [from_strides[1], from_strides[0]], out.size, [columns, rows]);
            } else {
                for i in 0..rows as isize {
                    for j in 0..columns as isize {
                        let (x, y) =
                            (source.offset(i * from_strides[0] + j * from_strides[1]), to.offset(i * to_strides[0] + j * to_strides[1]));
                        std::ptr::copy_nonoverlapping(x, y, out.size);
                    }
                }
            }
        }
    }

    unsafe fn run_range(&self, range: Range<usize>) -> u8 {
        let tile = self.tile.min(range.len());
        let Ok(mut worker) = Worker::new(self, tile) else { return NO_MEMORY };
        // SAFETY: the caller's; tiles are inside the range.
        unsafe {
            worker.rebase(&[]);
            let space = &self.space;
            let (mut cursor, mut at, mut failure) = (Cursor::at(space, range.start), range.start, 0);
            while at < range.end {
                let left = range.end - at;
                let n = tile.min(if self.across { left } else { left.min(cursor.left(space)) });
                if self.plan.moves {
                    worker.transfer(&cursor, at, n);
                } else {
                    failure |= worker.eval_at(&cursor, at, n);
                    worker.put(&cursor, n);
                }
                at += n;
                if self.across {
                    cursor = Cursor::at(space, at);
                } else {
                    cursor.advance(space, n);
                }
            }
            failure
        }
    }
}

/// What one thread needs to run a call: registers, buffers and where the slots point.
pub struct Worker<'a> {
    call: &'a Call<'a>,
    scratch: Scratch,
    stride: usize,
    tile: usize,
    slots: SmallVec<[*mut u8; 16]>,
    /// How far each operand is from where the call has it, in bytes.
    shifts: SmallVec<[isize; 4]>,
}

impl<'a> Worker<'a> {
    /// Registers for tiles of up to so many elements, constants filled in.
    pub fn new(call: &'a Call<'a>, tile: usize) -> Result<Worker<'a>, alloc::OutOfMemory> {
        let plan = call.plan;
        let stride = (tile.min(1 << 40) * call.width()).next_multiple_of(64);
        let held = plan.registers + call.buffers();
        let scratch = Scratch::new(if held == 0 { 0 } else { held.saturating_mul(stride) })?;
        let mut slots: SmallVec<[*mut u8; 16]> = SmallVec::new();
        slots.resize(call.args.len(), std::ptr::null_mut());
        slots.extend((0..plan.registers).map(|r| scratch.ptr().wrapping_add(r * stride)));
        let first = call.args.len();
        for (i, constant) in plan.constants.iter().enumerate() {
            // SAFETY: the register holds a tile.
            unsafe { fill_constant(slots[first + i], constant, call.params, tile) };
        }
        Ok(Worker { call, scratch, stride, tile, slots, shifts: SmallVec::new() })
    }

    /// Moves the operands by so many bytes from where the call has them (not at all without numbers).
    ///
    /// # Safety
    /// The call's space at the new places is inside the operands.
    pub unsafe fn rebase(&mut self, shifts: &[isize]) {
        let call = self.call;
        self.shifts.clear();
        self.shifts.extend((0..call.args.len()).map(|k| shifts.get(k).copied().unwrap_or(0)));
        let mut buffers = call.plan.registers;
        for (k, arg) in call.args.iter().enumerate() {
            if call.access[k] != Access::Direct {
                self.slots[arg.slot] = self.scratch.ptr().wrapping_add(buffers * self.stride);
                buffers += 1;
            }
            if call.access[k] == Access::Single {
                let from = arg.ptr.wrapping_offset(self.shifts[k]);
                // SAFETY: the buffer holds a tile, and the operand has an element.
                unsafe { gather::read_row(self.slots[arg.slot], from, 0, arg.size, self.tile) };
            }
        }
    }

    /// Runs the steps on the `n` elements that have `at` elements before them. Tells what failed.
    ///
    /// # Safety
    /// The elements are inside the call's space, in one row unless the call's tiles span rows; not more than a tile.
    pub unsafe fn eval(&mut self, at: usize, n: usize) -> u8 {
        let call = self.call;
        let linear = call.across || call.space.sizes.len() == 1;
        if linear && call.access.iter().all(|a| *a != Access::Buffer) {
            for (k, arg) in call.args.iter().enumerate().filter(|(k, _)| call.access[*k] == Access::Direct) {
                self.slots[arg.slot] = arg.ptr.wrapping_offset(self.shifts[k] + (at * arg.size) as isize);
            }
            // SAFETY: the slots hold the tile.
            return unsafe { self.execute(n) };
        }
        // SAFETY: the caller's.
        unsafe { self.eval_at(&Cursor::at(&call.space, at), at, n) }
    }

    /// [`Worker::eval`], where the place of the first element is known.
    unsafe fn eval_at(&mut self, cursor: &Cursor, at: usize, n: usize) -> u8 {
        let call = self.call;
        for (k, arg) in call.args.iter().enumerate() {
            let base = arg.ptr.wrapping_offset(self.shifts[k]);
            match call.access[k] {
                Access::Single => {}
                Access::Direct if call.across => self.slots[arg.slot] = base.wrapping_add(at * arg.size),
                Access::Direct => self.slots[arg.slot] = base.wrapping_offset(cursor.offset(&call.space, k)),
                // SAFETY: the caller's.
                Access::Buffer if !arg.output => unsafe { gather::gather(self.slots[arg.slot], base, &call.space, k, cursor, arg.size, n) },
                Access::Buffer => {}
            }
        }
        // SAFETY: the slots hold the tile.
        unsafe { self.execute(n) }
    }

    /// Runs the steps on the first `n` elements that the slots point to.
    unsafe fn execute(&mut self, n: usize) -> u8 {
        // SAFETY: the caller's.
        unsafe { execute(&self.call.plan.code, &self.slots, n) }
    }

    /// Moves a tile of the one input to the one output.
    unsafe fn transfer(&mut self, cursor: &Cursor, at: usize, n: usize) {
        let call = self.call;
        let (out, from) = (&call.args[0], &call.args[1]);
        let place = |k: usize| {
            let arg = &call.args[k];
            if call.across { arg.ptr.wrapping_add(at * arg.size) } else { arg.ptr.wrapping_offset(cursor.offset(&call.space, k)) }
        };
        // SAFETY: the caller's: the tile is inside the space; memory of input and output is the same or apart.
        unsafe {
            match (call.access[0], call.access[1]) {
                (Access::Direct, Access::Direct) => std::ptr::copy(place(1), place(0), n * out.size),
                (Access::Direct, Access::Single) => gather::read_row(place(0), from.ptr, 0, from.size, n),
                (Access::Direct, Access::Buffer) => gather::gather(place(0), from.ptr, &call.space, 1, cursor, from.size, n),
                (_, Access::Direct) => gather::scatter(out.ptr, place(1), &call.space, 0, cursor, out.size, n),
                _ => {
                    let buffer = self.slots[from.slot];
                    if call.access[1] == Access::Buffer {
                        gather::gather(buffer, from.ptr, &call.space, 1, cursor, from.size, n);
                    }
                    gather::scatter(out.ptr, buffer, &call.space, 0, cursor, out.size, n);
                }
            }
        }
    }

    /// Where result `i` of the last tile is, in plans that keep their results.
    pub fn result(&self, i: usize) -> *const u8 {
        self.slots[self.call.plan.results[i] as usize]
    }

    /// Writes buffered outputs of a tile to where they belong.
    unsafe fn put(&self, cursor: &Cursor, n: usize) {
        for (k, arg) in self.call.args.iter().enumerate() {
            if arg.output && self.call.access[k] == Access::Buffer {
                // SAFETY: the caller's.
                unsafe { gather::scatter(arg.ptr, self.slots[arg.slot], &self.call.space, k, cursor, arg.size, n) };
            }
        }
    }
}

/// Runs steps on the first `n` elements that the slots point to. Tells what failed.
///
/// # Safety
/// The slots that the steps name point to `n` elements of the dtypes and classes for which the steps were chosen.
pub unsafe fn execute(code: &[Inst], slots: &[*mut u8], n: usize) -> u8 {
    let mut failure = 0;
    for inst in code {
        let out = slots[inst.out as usize];
        // SAFETY: the caller's; the processor has the steps' instructions.
        unsafe {
            (inst.f)(out, inst.args.map(|a| slots[a as usize].cast_const()), n);
            if inst.check && std::slice::from_raw_parts(out, n).iter().any(|&z| z != 0) {
                failure |= ZERO_DIVISOR;
            }
        }
    }
    failure
}

fn access(space: &Space, k: usize, arg: &Arg, across: bool, blocks: bool) -> Access {
    if !arg.output && space.is_single(k) && space.numel > 1 {
        return Access::Single;
    }
    if blocks {
        return Access::Buffer;
    }
    let direct = if across { space.is_linear(k, arg.size) } else { space.inner_stride(k) == arg.size as isize || space.inner() == 1 };
    if direct { Access::Direct } else { Access::Buffer }
}

/// Memory of a call's own, given back when dropped.
pub struct Scratch(NonNull<u8>, usize);

impl Scratch {
    /// So many bytes.
    pub fn new(nbytes: usize) -> Result<Scratch, alloc::OutOfMemory> {
        Ok(Scratch(alloc::allocate(nbytes)?, nbytes))
    }

    /// The first one.
    pub fn ptr(&self) -> *mut u8 {
        self.0.as_ptr()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated with this size, and gone with the value.
        unsafe { alloc::deallocate(self.0, self.1) };
    }
}

/// Fills a register with a constant as its class holds it: narrow floats are not rounded.
unsafe fn fill_constant(to: *mut u8, constant: &Constant, params: &[Scalar], n: usize) {
    let bytes = constant_bytes(constant.dtype(), constant.value(params));
    // SAFETY: the caller's; the bytes hold an element of this size.
    unsafe { fill(to, bytes.as_ptr().cast(), Class::of(constant.dtype()).size(), n) }
}

/// A number as a register of the dtype's class holds it.
pub fn constant_bytes(dtype: DType, value: Scalar) -> [u64; 2] {
    let two = |lo: u32, hi: u32| lo as u64 | (hi as u64) << 32;
    match Class::of(dtype) {
        Class::Bool => [value.to_bool() as u64, 0],
        Class::U64 => [if let Scalar::Float(x) = value { x as u64 } else { value.to_i64() as u64 }, 0],
        Class::I32 => [wrap(dtype, value.to_i64()) as u32 as u64, 0],
        Class::I64 => [wrap(dtype, value.to_i64()) as u64, 0],
        Class::F32 => [(value.to_f64() as f32).to_bits() as u64, 0],
        Class::F64 => [value.to_f64().to_bits(), 0],
        Class::C64 => {
            let z = value.to_complex();
            [two((z.re as f32).to_bits(), (z.im as f32).to_bits()), 0]
        }
        Class::C128 => {
            let z = value.to_complex();
            [z.re.to_bits(), z.im.to_bits()]
        }
    }
}

fn wrap(dtype: DType, x: i64) -> i64 {
    match dtype {
        DType::U8 => x as u8 as i64,
        DType::I8 => x as i8 as i64,
        DType::U16 => x as u16 as i64,
        DType::I16 => x as i16 as i64,
        DType::U32 => x as u32 as i64,
        DType::I32 => x as i32 as i64,
        _ => x,
    }
}
