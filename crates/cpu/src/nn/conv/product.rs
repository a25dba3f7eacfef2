//! Convolutions of floating point numbers as matrix products of windows and weights.
//!
//! | what | rows and columns | sum over |
//! |---|---|---|
//! | output | output channels, positions | taps and input channels |
//! | gradient of the input | input channels, positions | taps and output channels |
//! | gradient of the weight | output channels, taps and input channels | positions |
//!
//! Where channels lie side by side in memory, rows and columns of the first two change places. With a stride, the
//! gradient of the input falls apart into one product for each position modulo the stride, each of which sees but the
//! taps that reach it.

use super::operands::{Element, Image, Target, Weight, Windows};
use super::turned;
use super::windows::{Axis, Places, Run, Tap, taps};
use crate::gemm::{Bias, Indirect, IndirectProduct, Table};
use crate::nn::real::Shared;
use crate::pool;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{Conv, ConvKind};
use std::ops::Range;

/// Operations below which one thread is faster than several.
const PARALLEL: f64 = 1.0e6;

/// One product for each group, but for the groups' addresses.
pub struct Part {
    /// Where the positions' windows lie.
    pub windows: Places,
    /// The windows' elements.
    pub taps: Vec<Tap>,
    /// Where the result's or the gradient's positions lie.
    pub image: Places,
    /// Elements to the first of them.
    pub start: isize,
}

impl Part {
    /// Calls `f` with runs that are walked with one step both in the windows and in an image, and where in the image each
    /// begins. One of the two may have rows merged where the other has not.
    pub fn lines(&self, mut f: impl FnMut(Run, isize)) {
        let mut before = 0;
        self.windows.runs(0..self.windows.count(), |run| {
            self.image.runs(before..before + run.len, |place| f(run.part(place.lane, place.len, self.windows.steps[2]), place.offset));
            before += run.len;
        });
    }

    /// Elements from window to window of a run; that of a single window is taken as adjacent.
    pub fn step(&self, run: &Run) -> isize {
        if run.len == 1 { 1 } else { self.windows.steps[2] }
    }
}

/// See [`Conv`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn run<T: Element>(call: &Conv) -> Result<()> {
    let mut call = *call;
    // SAFETY: the caller's. The copy lives as long as it is read.
    let _copy = unsafe { if call.kind == ConvKind::Weight { turned::input::<T>(&mut call)? } else { turned::weight::<T>(&mut call)? } };
    // SAFETY: the caller's.
    unsafe { products::<T>(&call) };
    Ok(())
}

/// # Safety
/// The kernel contract.
unsafe fn products<T: Element>(call: &Conv) {
    let parts = parts(call);
    let count = parts.len() * call.groups;
    let shared = Shared((*call, &parts[..]));
    // How each part is cut, and how many tasks come before it.
    let (mut grids, mut tasks, mut operations) = (Vec::with_capacity(parts.len()), 0, 0.0);
    for part in &parts {
        // SAFETY: the caller's.
        let (grid, work) =
            unsafe { with_product::<T, _>(call, part, 0, |product| (product.grid(count, pool::num_threads()), product.operations())) };
        grids.push((grid, tasks));
        tasks += grid.0 * grid.1 * call.groups;
        operations += work * call.groups as f64;
    }
    let grain = (PARALLEL / 4.0 * tasks as f64 / operations.max(1.0)).ceil() as usize;
    pool::parallel_for(tasks, if operations < PARALLEL { tasks } else { grain }, &|range: Range<usize>| {
        let (call, parts) = &{ &shared }.0;
        for task in range {
            let at = grids.partition_point(|(_, before)| *before <= task) - 1;
            let ((down, across), before) = grids[at];
            let (group, cell) = ((task - before) / (down * across), (task - before) % (down * across));
            // SAFETY: the caller's; each task writes a part of the result of its own.
            unsafe {
                with_product::<T, _>(call, &parts[at], group, |product| {
                    product.run((down, across), (cell / across, cell % across));
                });
            }
        }
    });
}

/// The windows that positions see, and where the positions lie.
pub fn parts(call: &Conv) -> Vec<Part> {
    let (x, y) = (&call.x.strides, &call.y.strides);
    if call.kind != ConvKind::Input {
        let axes = std::array::from_fn(|d| Axis {
            positions: call.output[d],
            step: call.stride[d],
            taps: (0..call.kernel[d]).map(|k| (k, (k * call.dilation[d]) as isize - call.padding[d] as isize)).collect(),
            size: call.input[d],
        });
        return vec![part(call, &axes, x, Places { sizes: call.output, steps: [y[2], y[3], y[4]], image: y[0] }, 0)];
    }
    let mut parts = Vec::new();
    let phases = call.stride.map(|s| s as isize);
    for r0 in 0..call.stride[0].min(call.input[0]) {
        for r1 in 0..call.stride[1].min(call.input[1]) {
            for r2 in 0..call.stride[2].min(call.input[2]) {
                let first = [r0, r1, r2];
                let axes = std::array::from_fn(|d| phase(call, d, first[d]));
                let sizes = std::array::from_fn(|d| axes[d].positions);
                let steps = std::array::from_fn(|d| x[2 + d] * phases[d]);
                let start = (0..3).map(|d| first[d] as isize * x[2 + d]).sum();
                parts.push(part(call, &axes, y, Places { sizes, steps, image: x[0] }, start));
            }
        }
    }
    parts
}

/// The input's positions that are `first` modulo the stride, and the taps that reach them.
fn phase(call: &Conv, d: usize, first: usize) -> Axis {
    let stride = call.stride[d];
    let reach = |k: usize| first as isize + call.padding[d] as isize - (k * call.dilation[d]) as isize;
    let taps = (0..call.kernel[d]).filter(|&k| reach(k) % stride as isize == 0);
    Axis {
        positions: (call.input[d] - first).div_ceil(stride),
        step: 1,
        taps: taps.map(|k| (k, reach(k) / stride as isize)).collect(),
        size: call.output[d],
    }
}

fn part(call: &Conv, axes: &[Axis; 3], source: &[isize; 5], image: Places, start: isize) -> Part {
    let steps = std::array::from_fn(|d| source[2 + d] * axes[d].step as isize);
    let windows = Places { sizes: std::array::from_fn(|d| axes[d].positions), steps, image: source[0] };
    let taps = taps(axes, &source[2..], &call.w.strides[2..]);
    // Windows of one element that lie side by side are one long row.
    let whole = |tap: &Tap| tap.valid.iter().zip(windows.sizes).all(|(v, n)| *v == (0..n));
    match &taps[..] {
        [one] if whole(one) => {
            let windows = windows.merged();
            let valid = std::array::from_fn(|d| 0..windows.sizes[d]);
            Part { windows, taps: vec![Tap { valid, ..one.clone() }], image: image.merged(), start }
        }
        _ => Part { windows, taps, image: image.merged(), start },
    }
}

/// Channels by positions.
struct Forward<'a, T> {
    windows: Windows<'a, T>,
    weight: Weight<'a, T>,
    image: Image<T>,
}

/// Positions by channels.
struct Turned<'a, T>(Forward<'a, T>);

/// Channels by window elements.
struct OfWeight<'a, T> {
    windows: Windows<'a, T>,
    /// The gradient of the output.
    image: Image<T>,
    result: *mut T,
    /// Elements of the result from row to row, and from channel to channel.
    steps: [isize; 2],
}

// SAFETY: operands are only read, and each part of a result is written by one task.
unsafe impl<T> Sync for Forward<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Turned<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OfWeight<'_, T> {}

impl<T: Element> Indirect<T> for Forward<'_, T> {
    // SAFETY (of all the blocks below): by the promises of the callers, see `Indirect`.
    unsafe fn pack_left(&self, table: &Table<T, T>, rows: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.weight.pack(table, rows, steps, Target { ptr, row }) }
    }

    unsafe fn pack_right(&self, table: &Table<T, T>, columns: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.windows.pack_positions(table, columns, steps, Target { ptr, row }) }
    }

    unsafe fn store(&self, row: usize, columns: Range<usize>, from: *const T) {
        unsafe { self.image.store_positions(row, columns, from) }
    }
}

impl<T: Element> Indirect<T> for Turned<'_, T> {
    // SAFETY (of all the blocks below): by the promises of the callers, see `Indirect`.
    unsafe fn pack_left(&self, table: &Table<T, T>, rows: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.0.windows.pack_positions(table, rows, steps, Target { ptr, row }) }
    }

    unsafe fn pack_right(&self, table: &Table<T, T>, columns: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.0.weight.pack(table, columns, steps, Target { ptr, row }) }
    }

    unsafe fn store(&self, row: usize, columns: Range<usize>, from: *const T) {
        unsafe { self.0.image.store_channels(row, columns, from) }
    }
}

impl<T: Element> Indirect<T> for OfWeight<'_, T> {
    // SAFETY (of all the blocks below): by the promises of the callers, see `Indirect`.
    unsafe fn pack_left(&self, table: &Table<T, T>, rows: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.image.pack(table, rows, steps, Target { ptr, row }) }
    }

    unsafe fn pack_right(&self, table: &Table<T, T>, columns: Range<usize>, steps: Range<usize>, ptr: *mut T, row: usize) {
        unsafe { self.windows.pack_elements(table, columns, steps, Target { ptr, row }) }
    }

    unsafe fn store(&self, row: usize, columns: Range<usize>, from: *const T) {
        let [line, channel] = self.steps;
        self.windows.segments(columns, |tap, c, count, before| {
            let to = self.result.wrapping_offset(row as isize * line + tap.weight + c as isize * channel);
            for i in 0..count {
                unsafe { *to.wrapping_offset(i as isize * channel) = *from.add(before + i) };
            }
        });
    }
}

/// Calls `f` with the product of a part and a group.
///
/// # Safety
/// The kernel contract.
unsafe fn with_product<T: Element, R>(call: &Conv, part: &Part, group: usize, f: impl FnOnce(&IndirectProduct<T>) -> R) -> R {
    let [inner, outer] = call.channels;
    let at = |operand: &flambeau_engine::backend::layers::ConvOperand, step: usize, channels: usize| {
        operand.ptr.cast::<T>().wrapping_offset((group * channels) as isize * operand.strides[step])
    };
    let (x, y, w) = (at(&call.x, 1, inner), at(&call.y, 1, outer), at(&call.w, 0, outer));
    let (x_channel, y_channel) = (call.x.strides[1], call.y.strides[1]);
    let places = part.image.count() * call.batch;
    let taps = &part.taps[..];
    if call.kind == ConvKind::Weight {
        let windows = Windows { ptr: x, channel: x_channel, channels: inner, places: part.windows, taps };
        let image = Image { ptr: y, channel: y_channel, places: part.image };
        let operands = OfWeight { windows, image, result: w, steps: [call.w.strides[0], call.w.strides[1]] };
        let (n, k) = (inner * taps.len(), places);
        return f(&IndirectProduct { m: outer, n, k, bias: Bias::None, operands: &operands });
    }
    // Of both kinds of gradients: from where, from how many channels, to where, to how many.
    let forward = call.kind == ConvKind::Output;
    let (from, from_channel, others, to, to_channel, own) =
        if forward { (x, x_channel, inner, y, y_channel, outer) } else { (y, y_channel, outer, x, x_channel, inner) };
    let [out_step, in_step] = [call.w.strides[0], call.w.strides[1]];
    let (line, channel) = if forward { (out_step, in_step) } else { (in_step, out_step) };
    let operands = Forward {
        windows: Windows { ptr: from, channel: from_channel, channels: others, places: part.windows, taps },
        weight: Weight { ptr: w, line, channel, channels: others, taps },
        image: Image { ptr: to.wrapping_offset(part.start), channel: to_channel, places: part.image },
    };
    let k = others * taps.len();
    let bias = call.bias.cast::<T>().wrapping_add(group * own);
    let none = call.bias.is_null();
    if to_channel == 1 && own > 1 {
        let bias = if none { Bias::None } else { Bias::Columns(bias) };
        return f(&IndirectProduct { m: places, n: own, k, bias, operands: &Turned(operands) });
    }
    let bias = if none { Bias::None } else { Bias::Rows(bias) };
    f(&IndirectProduct { m: own, n: places, k, bias, operands: &operands })
}
