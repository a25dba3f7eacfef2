//! Convolutions of groups of one input channel each: every window is weighed where it lies.

use super::operands::Element;
use super::product::{Part, parts};
use super::windows::{Run, Tap};
use crate::gemm::{LINES, Table, Weighed};
use crate::nn::real::Shared;
use crate::pool::{self, parallel_for};
use flambeau_engine::backend::layers::{Conv, ConvKind};
use std::ops::Range;

/// Multiply-adds that are worth a thread.
const GRAIN: usize = 64 << 10;

/// Output channels of a group from which on a matrix product of the group is faster, unless rows are wide.
const MANY: usize = 4;

/// Positions of a row from which on it is wide: a vector of single precision.
const WIDE: usize = 16;

/// Whether a convolution is computed here.
pub fn fits(call: &Conv) -> bool {
    let few = match call.kind {
        ConvKind::Output => call.channels[1] < MANY || call.output[2] >= WIDE,
        ConvKind::Input => true,
        ConvKind::Weight => call.channels[1] < MANY,
    };
    call.channels[0] == 1 && (rows_adjacent(call) && few || channels_adjacent(call))
}

/// Whether positions lie side by side, in rows.
fn rows_adjacent(call: &Conv) -> bool {
    let adjacent = |strides: &[isize; 5], size: usize| strides[4] == 1 || size == 1;
    adjacent(&call.x.strides, call.input[2]) && adjacent(&call.y.strides, call.output[2])
}

/// Whether channels do, one for one.
fn channels_adjacent(call: &Conv) -> bool {
    call.channels == [1, 1] && call.x.strides[1] == 1 && call.y.strides[1] == 1
}

/// See [`Conv`].
///
/// # Safety
/// The kernel contract; the call [`fits`].
pub unsafe fn run<T: Element>(call: &Conv) {
    let parts = parts(call);
    let table = T::table_here();
    let taps = call.kernel.iter().product::<usize>();
    let shared = Shared((*call, &parts[..]));
    let by_rows = rows_adjacent(call);
    let outer = call.channels[1];
    let area: usize = call.output.iter().product();
    let channels = call.groups * if call.kind == ConvKind::Input { 1 } else { outer };
    // Channels that are computed together: fewer where threads would be left without.
    let threads = (call.batch * channels * area * taps / GRAIN).clamp(1, pool::num_threads());
    let together = outer.div_ceil(threads.div_ceil((call.batch * call.groups).max(1))).clamp(1, LINES);
    let blocks = outer.div_ceil(together);
    let several = by_rows && call.kind == ConvKind::Output && together > 1;
    // What one index stands for.
    let (count, work) = match (by_rows, call.kind) {
        _ if several => (call.batch * call.groups * blocks, area * taps * together),
        (true, ConvKind::Weight) => (channels, call.batch * area * taps),
        (true, _) => (call.batch * channels, area * taps),
        (false, ConvKind::Weight) => (channels.div_ceil(CHANNELS), call.batch * area * taps * CHANNELS),
        (false, _) => (call.batch, area * taps * channels),
    };
    parallel_for(count, (GRAIN / work.max(1)).max(1), &|range: Range<usize>| {
        let (call, parts) = &{ &shared }.0;
        // SAFETY: the caller's; each index has a part of the result of its own.
        unsafe {
            match (by_rows, call.kind) {
                _ if several => range.for_each(|index| {
                    let (n, group, block) = (index / blocks / call.groups, index / blocks % call.groups, index % blocks);
                    let (first, last) = (group * outer + block * together, (group + 1) * outer);
                    lines_of_rows::<T>(table, call, &parts[0], n, first..last.min(first + together));
                }),
                (true, ConvKind::Weight) => range.for_each(|o| weight_of_rows::<T>(table, call, &parts[0], o)),
                (true, _) => range.for_each(|plane| parts.iter().for_each(|part| plane_of_rows::<T>(table, call, part, plane, channels))),
                (false, ConvKind::Weight) => range.for_each(|block| weight_of_channels::<T>(table, call, &parts[0], block)),
                (false, _) => range.for_each(|n| image_of_channels::<T>(table, call, parts, n)),
            }
        }
    });
}

/// Channels whose weights' gradients are summed up together.
const CHANNELS: usize = 64;

/// The rows of the taps that lie in the tensor at a run of positions.
fn rows<T: Element>(run: &Run, taps: &[Tap], base: *const T, weight: impl Fn(&Tap) -> T, to: &mut Vec<Weighed<T>>) {
    for (i, tap) in taps.iter().enumerate() {
        let Some((skip, len)) = tap.clip(run) else { continue };
        let ptr = base.wrapping_offset(run.offset + tap.offset);
        to.push(Weighed { ptr, first: skip, last: skip + len, weight: weight(tap), sum: i });
    }
}

/// One channel of one image.
unsafe fn plane_of_rows<T: Element>(table: &Table<T, T>, call: &Conv, part: &Part, plane: usize, channels: usize) {
    let (n, channel) = (plane / channels, plane % channels);
    let outer = call.channels[1];
    let forward = call.kind == ConvKind::Output;
    let (from, to) = if forward { (&call.x, &call.y) } else { (&call.y, &call.x) };
    // SAFETY: the caller's.
    let start = if call.bias.is_null() { T::default() } else { unsafe { *call.bias.cast::<T>().add(channel) } };
    // Which channels of the source, with which of the weight: one, or all of a group.
    let sources = if forward { channel / outer..channel / outer + 1 } else { channel * outer..(channel + 1) * outer };
    let image = to.ptr.cast::<T>().wrapping_offset(n as isize * to.strides[0] + channel as isize * to.strides[1] + part.start);
    let mut list = Vec::with_capacity(part.taps.len() * sources.len());
    let step = part.image.steps[2];
    let mut buffer = vec![T::default(); if step == 1 { 0 } else { part.windows.sizes[2] }];
    part.lines(|run, place| {
        list.clear();
        for source in sources.clone() {
            let base = from.ptr.cast::<T>().wrapping_offset(n as isize * from.strides[0] + source as isize * from.strides[1]);
            let own = if forward { channel } else { source };
            let w = call.w.ptr.cast::<T>().wrapping_offset(own as isize * call.w.strides[0]);
            // SAFETY: the tap is in the weight.
            let weight = |tap: &Tap| unsafe { *w.wrapping_offset(tap.weight) };
            rows(&run, &part.taps, base.cast_const(), weight, &mut list);
        }
        let to = image.wrapping_offset(place);
        // SAFETY: rows are where taps lie in the tensor; the image has a row of such width.
        unsafe {
            if step == 1 || run.len == 1 {
                return (table.weigh_row)(&list, part.step(&run), start, run.len, to);
            }
            (table.weigh_row)(&list, part.step(&run), start, run.len, buffer.as_mut_ptr());
            for (i, &x) in buffer[..run.len].iter().enumerate() {
                *to.wrapping_offset(i as isize * step) = x;
            }
        }
    });
}

/// Up to [`LINES`] output channels of one group and image.
unsafe fn lines_of_rows<T: Element>(table: &Table<T, T>, call: &Conv, part: &Part, n: usize, channels: Range<usize>) {
    let (x, y, first) = (&call.x, &call.y, channels.start);
    let group = first / call.channels[1];
    let mut starts = [T::default(); LINES];
    let mut weights = vec![T::default(); part.taps.len() * LINES];
    for (i, channel) in channels.clone().enumerate() {
        let w = call.w.ptr.cast::<T>().wrapping_offset(channel as isize * call.w.strides[0]);
        // SAFETY: taps and channels are in the weight, channels in the bias.
        unsafe {
            for (tap, to) in part.taps.iter().zip(weights.chunks_exact_mut(LINES)) {
                to[i] = *w.wrapping_offset(tap.weight);
            }
            if !call.bias.is_null() {
                starts[i] = *call.bias.cast::<T>().add(channel);
            }
        }
    }
    let own = [weights.as_ptr(), starts.as_ptr()];
    let base = x.ptr.cast::<T>().wrapping_offset(n as isize * x.strides[0] + group as isize * x.strides[1]).cast_const();
    let image = y.ptr.cast::<T>().wrapping_offset(n as isize * y.strides[0] + first as isize * y.strides[1] + part.start);
    let mut list = Vec::with_capacity(part.taps.len());
    let (step, longest) = (part.image.steps[2], part.windows.sizes[2]);
    let mut buffer = vec![T::default(); if step == 1 { 0 } else { longest * LINES }];
    part.lines(|run, place| {
        list.clear();
        rows(&run, &part.taps, base, |_| T::default(), &mut list);
        let (to, to_line) = (image.wrapping_offset(place), y.strides[1]);
        // SAFETY: rows are where taps lie in the tensor; each channel of the image has a row of such width.
        unsafe {
            if step == 1 || run.len == 1 {
                return (table.weigh_lines)(&list, part.step(&run), own, channels.len(), run.len, to, to_line);
            }
            let ptr = buffer.as_mut_ptr();
            (table.weigh_lines)(&list, part.step(&run), own, channels.len(), run.len, ptr, longest as isize);
            for (c, from) in buffer.chunks_exact(longest).take(channels.len()).enumerate() {
                for (i, &x) in from[..run.len].iter().enumerate() {
                    *to.wrapping_offset(c as isize * to_line + i as isize * step) = x;
                }
            }
        }
    });
}

/// The gradient of the weights of one output channel.
unsafe fn weight_of_rows<T: Element>(table: &Table<T, T>, call: &Conv, part: &Part, o: usize) {
    let taps = part.taps.len();
    let mut total = vec![T::default(); taps];
    let mut folded = vec![T::default(); taps];
    let mut sums = vec![T::default(); taps * table.lanes];
    let mut list = Vec::with_capacity(taps);
    let channel = o / call.channels[1];
    for n in 0..call.batch {
        let base = call.x.ptr.cast::<T>().wrapping_offset(n as isize * call.x.strides[0] + channel as isize * call.x.strides[1]);
        let y = call.y.ptr.cast::<T>().wrapping_offset(n as isize * call.y.strides[0] + o as isize * call.y.strides[1]);
        sums.fill(T::default());
        part.lines(|run, place| {
            list.clear();
            rows(&run, &part.taps, base.cast_const(), |_| T::default(), &mut list);
            // SAFETY: rows are where taps lie in the tensor; `y` has a row of such width.
            unsafe { (table.dot_row)(y.wrapping_offset(place).cast_const(), run.len, &list, part.step(&run), sums.as_mut_ptr()) }
        });
        // SAFETY: a vector of lanes for each tap.
        unsafe { (table.fold_lanes)(sums.as_ptr(), taps, folded.as_mut_ptr()) };
        for (t, &f) in total.iter_mut().zip(&folded) {
            *t = <T as crate::gemm::Kernels>::add(*t, f);
        }
    }
    for (tap, &sum) in part.taps.iter().zip(&total) {
        // SAFETY: the tap is in the weight.
        unsafe { *call.w.ptr.cast::<T>().wrapping_offset(o as isize * call.w.strides[0] + tap.weight) = sum };
    }
}

/// All channels of one image.
unsafe fn image_of_channels<T: Element>(table: &Table<T, T>, call: &Conv, parts: &[Part], n: usize) {
    let forward = call.kind == ConvKind::Output;
    let (from, to) = if forward { (&call.x, &call.y) } else { (&call.y, &call.x) };
    let channels = call.groups;
    for part in parts {
        // The weights tap by tap, their channels side by side.
        let mut weights = vec![T::default(); part.taps.len() * channels];
        for (tap, own) in part.taps.iter().zip(weights.chunks_exact_mut(channels.max(1))) {
            for (c, w) in own.iter_mut().enumerate() {
                // SAFETY: the tap and channel are in the weight.
                *w = unsafe { *call.w.ptr.cast::<T>().wrapping_offset(c as isize * call.w.strides[0] + tap.weight) };
            }
        }
        let base = from.ptr.cast::<T>().wrapping_offset(n as isize * from.strides[0]).cast_const();
        let image = to.ptr.cast::<T>().wrapping_offset(n as isize * to.strides[0] + part.start);
        let mut list = Vec::with_capacity(part.taps.len());
        part.lines(|run, place| {
            for i in 0..run.len {
                let at = run.part(i, 1, part.windows.steps[2]);
                list.clear();
                for (tap, own) in part.taps.iter().zip(weights.chunks_exact(channels.max(1))) {
                    if tap.clip(&at).is_some() {
                        list.push([base.wrapping_offset(at.offset + tap.offset), own.as_ptr()]);
                    }
                }
                let to = image.wrapping_offset(place + i as isize * part.image.steps[2]);
                // SAFETY: rows are where taps lie in the tensor; the image has all channels there.
                unsafe { (table.weigh_channels)(&list, call.bias.cast(), channels, to) }
            }
        });
    }
}

/// The gradient of the weights of a block of channels.
unsafe fn weight_of_channels<T: Element>(table: &Table<T, T>, call: &Conv, part: &Part, block: usize) {
    let first = block * CHANNELS;
    let count = CHANNELS.min(call.groups - first);
    let taps = part.taps.len();
    let mut total = vec![T::default(); taps * count];
    let mut sums = vec![T::default(); taps * count];
    for n in 0..call.batch {
        let x = call.x.ptr.cast::<T>().wrapping_offset(n as isize * call.x.strides[0] + first as isize).cast_const();
        let y = call.y.ptr.cast::<T>().wrapping_offset(n as isize * call.y.strides[0] + first as isize).cast_const();
        sums.fill(T::default());
        part.lines(|run, place| {
            for i in 0..run.len {
                let at = run.part(i, 1, part.windows.steps[2]);
                let y = y.wrapping_offset(place + i as isize * part.image.steps[2]);
                for (tap, sum) in part.taps.iter().zip(sums.chunks_exact_mut(count)) {
                    if tap.clip(&at).is_some() {
                        let rows = [[x.wrapping_offset(at.offset + tap.offset), y]];
                        // SAFETY: the row is where the tap lies in the tensor.
                        unsafe { (table.weigh_channels)(&rows, sum.as_ptr(), count, sum.as_mut_ptr()) };
                    }
                }
            }
        });
        for (t, &s) in total.iter_mut().zip(&sums) {
            *t = <T as crate::gemm::Kernels>::add(*t, s);
        }
    }
    for (tap, own) in part.taps.iter().zip(total.chunks_exact(count)) {
        for (c, &sum) in own.iter().enumerate() {
            // SAFETY: the tap and channel are in the weight.
            unsafe { *call.w.ptr.cast::<T>().wrapping_offset((first + c) as isize * call.w.strides[0] + tap.weight) = sum };
        }
    }
}
