//! Operands of the products that convolutions are made of, and how they are packed.

use super::windows::{Places, Run, Tap};
use crate::gemm::{GemmElement, Kernels, Line, MAX_LINES, Piece, Table};
use std::ops::Range;

/// An element type of the products: it is its own sum.
pub trait Element: GemmElement + Kernels<Sum = Self> + Copy + Default {}
impl Element for f32 {}
impl Element for f64 {}

/// Where packed numbers go: rows so many numbers apart.
#[derive(Clone, Copy)]
pub struct Target<T> {
    pub ptr: *mut T,
    pub row: usize,
}

impl<T> Target<T> {
    fn at(self, row: usize, column: usize) -> Target<T> {
        Target { ptr: self.ptr.wrapping_add(row * self.row + column), row: self.row }
    }
}

/// The windows of a tensor.
#[derive(Clone, Copy)]
pub struct Windows<'a, T> {
    pub ptr: *const T,
    /// Elements from channel to channel.
    pub channel: isize,
    /// How many channels.
    pub channels: usize,
    pub places: Places,
    pub taps: &'a [Tap],
}

/// A run of each of at most [`MAX_LINES`] positions.
struct Runs {
    all: [Run; MAX_LINES],
    count: usize,
}

impl Runs {
    fn of(places: &Places, range: Range<usize>) -> Runs {
        let mut runs = Runs { all: [Run::default(); MAX_LINES], count: 0 };
        places.runs(range, |run| {
            runs.all[runs.count] = run;
            runs.count += 1;
        });
        runs
    }

    fn iter(&self) -> impl Iterator<Item = &Run> {
        self.all[..self.count].iter()
    }
}

/// Pieces of some lines: as many as lines with as many runs each, at the most.
struct Pieces<T> {
    all: [Piece<T>; 16 * 16],
    count: usize,
}

impl<T: Copy> Pieces<T> {
    fn none() -> Pieces<T> {
        Pieces { all: [Piece::NONE; 16 * 16], count: 0 }
    }

    fn own(&self) -> &[Piece<T>] {
        &self.all[..self.count]
    }
}

impl<T: Element> Windows<'_, T> {
    /// Whether the channels lie side by side, rather than positions.
    fn channels_last(&self) -> bool {
        self.channel == 1 && self.channels > 1
    }

    /// Calls `f` with the taps that a range of window elements goes through: tap, first channel, number of channels, and
    /// how many elements of the range come before.
    pub fn segments(&self, range: Range<usize>, mut f: impl FnMut(&Tap, usize, usize, usize)) {
        let mut at = range.start;
        while at < range.end {
            let (tap, c) = (at / self.channels, at % self.channels);
            let count = (self.channels - c).min(range.end - at);
            f(&self.taps[tap], c, count, at - range.start);
            at += count;
        }
    }

    /// Adds the pieces of a tap at some runs, for vectors of so many lanes.
    fn pieces(&self, tap: &Tap, c: usize, runs: &Runs, lanes: usize, pieces: &mut Pieces<T>) {
        let step = self.places.steps[2];
        let base = self.ptr.wrapping_offset(tap.offset + c as isize * self.channel);
        for run in runs.iter() {
            let Some((skip, len)) = tap.clip(run) else { continue };
            let (first, last) = (run.lane + skip, run.lane + skip + len);
            // The element of lane 0, had it this run's step.
            let zero = base.wrapping_offset(run.offset - run.lane as isize * step);
            for vector in first / lanes..=(last - 1) / lanes {
                let start = vector * lanes;
                pieces.all[pieces.count] = Piece {
                    ptr: zero.wrapping_offset(start as isize * step),
                    vector,
                    first: first.max(start) - start,
                    last: last.min(start + lanes) - start,
                };
                pieces.count += 1;
            }
        }
    }

    /// Packs positions as lines, window elements as steps.
    ///
    /// # Safety
    /// The positions and elements are there, and the target has room for them.
    pub unsafe fn pack_positions(&self, table: &Table<T, T>, positions: Range<usize>, steps: Range<usize>, to: Target<T>) {
        let (width, runs) = (positions.len(), Runs::of(&self.places, positions));
        if self.channels_last() {
            return self.segments(steps, |tap, c, count, before| {
                let mut lines = [std::ptr::null(); MAX_LINES];
                let base = self.ptr.wrapping_offset(tap.offset + c as isize);
                for run in runs.iter() {
                    let Some((skip, len)) = tap.clip(run) else { continue };
                    for i in skip..skip + len {
                        lines[run.lane + i] = base.wrapping_offset(run.offset + i as isize * self.places.steps[2]);
                    }
                }
                // SAFETY: each line has the channels of a tap that lies in the tensor.
                unsafe { (table.pack_pointers)(&lines[..width], count, to.at(before, 0).ptr, to.row) }
            });
        }
        let mut pieces = Pieces::none();
        self.segments(steps, |tap, c, count, before| {
            pieces.count = 0;
            self.pieces(tap, c, &runs, table.lanes, &mut pieces);
            let (own, step) = (pieces.own(), self.places.steps[2]);
            // SAFETY: the pieces are where the tap lies in the tensor, for all channels.
            unsafe { (table.merge_rows)(own, step, self.channel, count, width, to.at(before, 0).ptr, to.row) }
        });
    }

    /// Packs window elements as lines, positions as steps.
    ///
    /// # Safety
    /// The positions and elements are there, and the target has room for them.
    pub unsafe fn pack_elements(&self, table: &Table<T, T>, elements: Range<usize>, positions: Range<usize>, to: Target<T>) {
        if self.channels_last() {
            // SAFETY: the caller's.
            return unsafe { self.pack_adjacent(table, elements, positions, to) };
        }
        let (lanes, mut pieces) = (table.lanes, Pieces::none());
        for start in positions.clone().step_by(lanes) {
            let chunk = start..(start + lanes).min(positions.end);
            let (steps, runs) = (chunk.len(), Runs::of(&self.places, chunk));
            for first in elements.clone().step_by(lanes) {
                let own = first..(first + lanes).min(elements.end);
                let mut lines = [Line::default(); 16];
                pieces.count = 0;
                self.segments(own.clone(), |tap, c, channels, before| {
                    let from = pieces.count;
                    self.pieces(tap, c, &runs, lanes, &mut pieces);
                    for (i, line) in lines[before..before + channels].iter_mut().enumerate() {
                        *line = Line { first: from, last: pieces.count, offset: i as isize * self.channel };
                    }
                });
                let target = to.at(start - positions.start, first - elements.start);
                let lines = &lines[..own.len()];
                // SAFETY: the pieces are where taps lie in the tensor, for all channels.
                unsafe { (table.merge_square)(lines, pieces.own(), self.places.steps[2], steps, target.ptr, target.row) }
            }
        }
    }

    /// [`Windows::pack_elements`] where channels lie side by side.
    ///
    /// # Safety
    /// As there.
    unsafe fn pack_adjacent(&self, table: &Table<T, T>, elements: Range<usize>, positions: Range<usize>, to: Target<T>) {
        let padded = elements.len().next_multiple_of(table.lanes);
        self.places.runs(positions, |run| {
            self.segments(elements.clone(), |tap, c, count, before| {
                let clipped = tap.clip(&run).unwrap_or((0, 0));
                let (skip, len) = clipped;
                let last = before + count == elements.len();
                let wide = if last { padded - before } else { count };
                // SAFETY: rows of the run, and in them the lines of the tap and what they are filled up with.
                unsafe {
                    for i in (0..skip).chain(skip + len..run.len) {
                        to.at(run.lane + i, before).ptr.write_bytes(0, wide);
                    }
                    if len == 0 {
                        return;
                    }
                    let step = self.places.steps[2];
                    let from = self.ptr.wrapping_offset(tap.offset + c as isize + run.offset + skip as isize * step);
                    let target = to.at(run.lane + skip, before);
                    if before.is_multiple_of(table.lanes) && (last || count.is_multiple_of(table.lanes)) {
                        return (table.pack)(from, 1, step, count, len, target.ptr, target.row);
                    }
                    for i in 0..len {
                        let to = target.at(i, 0).ptr;
                        std::ptr::copy_nonoverlapping(from.wrapping_offset(i as isize * step), to, count);
                        to.add(count).write_bytes(0, wide - count);
                    }
                }
            });
        });
    }
}

/// The weight as a matrix: a line for each channel of one side, a column for each tap and channel of the other.
#[derive(Clone, Copy)]
pub struct Weight<'a, T> {
    pub ptr: *const T,
    /// Elements from line to line.
    pub line: isize,
    /// Elements from channel to channel of the other side.
    pub channel: isize,
    pub channels: usize,
    pub taps: &'a [Tap],
}

impl<T: Element> Weight<'_, T> {
    /// Packs lines at some columns.
    ///
    /// # Safety
    /// They are there, and the target has room for them.
    pub unsafe fn pack(&self, table: &Table<T, T>, lines: Range<usize>, steps: Range<usize>, to: Target<T>) {
        let mut at = steps.start;
        while at < steps.end {
            let (mut tap, c) = (at / self.channels, at % self.channels);
            let first = &self.taps[tap];
            let mut count = (self.channels - c).min(steps.end - at);
            // Taps that follow one another in memory are one.
            while at + count < steps.end && self.taps[tap + 1].weight - self.taps[tap].weight == self.channels as isize * self.channel {
                tap += 1;
                count += self.channels.min(steps.end - at - count);
            }
            let from = self.ptr.wrapping_offset(first.weight + lines.start as isize * self.line + c as isize * self.channel);
            // SAFETY: the lines and columns are there.
            unsafe { (table.pack)(from, self.line, self.channel, lines.len(), count, to.at(at - steps.start, 0).ptr, to.row) };
            at += count;
        }
    }
}

/// Channels of images: a line for each channel, a column for each position.
#[derive(Clone, Copy)]
pub struct Image<T> {
    pub ptr: *mut T,
    /// Elements from channel to channel.
    pub channel: isize,
    pub places: Places,
}

impl<T: Element> Image<T> {
    /// Packs channels as lines, positions as steps.
    ///
    /// # Safety
    /// They are there, and the target has room for them.
    pub unsafe fn pack(&self, table: &Table<T, T>, lines: Range<usize>, positions: Range<usize>, to: Target<T>) {
        let base = self.ptr.wrapping_offset(lines.start as isize * self.channel);
        self.places.runs(positions, |run| {
            let (from, step) = (base.wrapping_offset(run.offset), self.places.steps[2]);
            // SAFETY: the lines and positions are there.
            unsafe { (table.pack)(from, self.channel, step, lines.len(), run.len, to.at(run.lane, 0).ptr, to.row) };
        });
    }

    /// Stores numbers of a channel at some positions.
    ///
    /// # Safety
    /// They are there; `from` holds a number for each.
    pub unsafe fn store_positions(&self, channel: usize, positions: Range<usize>, from: *const T) {
        let base = self.ptr.wrapping_offset(channel as isize * self.channel);
        let step = self.places.steps[2];
        self.places.runs(positions, |run| {
            let to = base.wrapping_offset(run.offset);
            // SAFETY: the run is in the image.
            unsafe {
                let from = from.add(run.lane);
                if step == 1 {
                    return std::ptr::copy_nonoverlapping(from, to, run.len);
                }
                for i in 0..run.len {
                    *to.wrapping_offset(i as isize * step) = *from.add(i);
                }
            }
        });
    }

    /// Stores numbers of some channels at a position.
    ///
    /// # Safety
    /// As for [`Image::store_positions`].
    pub unsafe fn store_channels(&self, position: usize, channels: Range<usize>, from: *const T) {
        self.places.runs(position..position + 1, |run| {
            let to = self.ptr.wrapping_offset(run.offset + channels.start as isize * self.channel);
            // SAFETY: the channels are in the image.
            unsafe {
                if self.channel == 1 {
                    return std::ptr::copy_nonoverlapping(from, to, channels.len());
                }
                for i in 0..channels.len() {
                    *to.wrapping_offset(i as isize * self.channel) = *from.add(i);
                }
            }
        });
    }
}
