//! Sums of taps along one to three spatial dimensions: average pools, interpolation, and the transposes of both.
//!
//! A row of the result (its last spatial dimension) is made in two steps: the rows of the input that the taps of the
//! other dimensions name are summed up, element by element, then the taps of the last dimension are applied to that
//! sum. Rows are shared among the threads.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::spatial::{Resample, Taps};
use std::ops::Range;

/// Numbers of taps from which on elements are summed up one by one.
const MANY: usize = 16;

/// See [`Resample`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn resample(call: &Resample) -> Result<()> {
    with_real!(call.op, call.dtype, R => {
        let [d, h, w] = call.axes;
        let rows = call.outer * d.output() * h.output();
        let last = Last::<<R as Real>::Sum>::of(w);
        let slow = [Axis::of(d), Axis::of(h)];
        let taps = |t: &Taps| t.index.len() / t.output().max(1) + 1;
        let cost = w.input * taps(h) * taps(d) + w.output() * taps(w);
        let shared = Shared((*call, slow, last));
        parallel_for(rows, grain(cost * call.inner, 1), &|range| {
            let (call, slow, last) = &{ &shared }.0;
            let mut buffer = vec![<R as Real>::Sum::ZERO; call.axes[2].input * call.inner];
            // SAFETY: each range has rows of its own; the rest is the caller's.
            unsafe { run(&Part::<R> { call, slow, last, range, buffer: buffer.as_mut_ptr() }) }
        });
        Ok(())
    })
}

/// A dimension other than the last.
struct Axis<A> {
    weight: Vec<A>,
    divisor: Vec<A>,
    /// Which elements have the taps of the one before them.
    again: Vec<bool>,
}

fn numbers<A: Sum>(from: &[f64]) -> Vec<A> {
    from.iter().map(|&w| A::of(w)).collect()
}

impl<A: Sum> Axis<A> {
    fn of(taps: &Taps) -> Axis<A> {
        let same = |i: usize| {
            let (a, b) = (taps.of(i - 1), taps.of(i));
            taps.index[a.clone()] == taps.index[b.clone()]
                && (taps.weight.is_empty() || taps.weight[a] == taps.weight[b])
                && (taps.divisor.is_empty() || taps.divisor[i - 1] == taps.divisor[i])
        };
        let again = (0..taps.output()).map(|i| i > 0 && same(i)).collect();
        Axis { weight: numbers(&taps.weight), divisor: numbers(&taps.divisor), again }
    }

    #[inline(always)]
    fn weight(&self, tap: usize) -> A {
        self.weight.get(tap).copied().unwrap_or(<A as Sum>::ONE)
    }

    #[inline(always)]
    fn divisor(&self, i: usize) -> A {
        self.divisor.get(i).copied().unwrap_or(<A as Sum>::ONE)
    }
}

/// The last dimension. The results `even` all have the same few taps: those lie here tap by tap.
struct Last<A> {
    weight: Vec<A>,
    divisor: Vec<A>,
    even: Range<usize>,
    taps: usize,
    /// How far apart the elements are that tap `k` takes for one result and the next; 0 where that differs.
    step: usize,
    index: Vec<i32>,
    weights: Vec<A>,
}

impl<A: Sum> Last<A> {
    fn of(taps: &Taps) -> Last<A> {
        let n = taps.output();
        let count = |i: usize| taps.of(i).len();
        let mut last = Last {
            weight: numbers(&taps.weight),
            divisor: numbers(&taps.divisor),
            even: 0..0,
            taps: 0,
            step: 0,
            index: vec![],
            weights: vec![],
        };
        if n == 0 || count(n / 2) == 0 || count(n / 2) > MANY {
            return last;
        }
        let k = count(n / 2);
        let lo = (0..n / 2).rev().take_while(|&i| count(i) == k).last().unwrap_or(n / 2);
        let hi = (n / 2..n).take_while(|&i| count(i) == k).last().map_or(n / 2, |i| i + 1);
        for tap in 0..k {
            last.index.extend((lo..hi).map(|i| taps.index[taps.starts[i] as usize + tap]));
            if !taps.weight.is_empty() {
                last.weights.extend((lo..hi).map(|i| last.weight[taps.starts[i] as usize + tap]));
            }
        }
        let step = if hi - lo > 1 { last.index[1] - last.index[0] } else { 1 };
        let regular = step > 0 && last.index.chunks(hi - lo).all(|of| of.windows(2).all(|w| w[1] - w[0] == step));
        (last.even, last.taps, last.step) = (lo..hi, k, if regular { step as usize } else { 0 });
        last
    }
}

struct Part<'a, R: Real> {
    call: &'a Resample<'a>,
    slow: &'a [Axis<R::Sum>; 2],
    last: &'a Last<R::Sum>,
    range: Range<usize>,
    /// A row of the input.
    buffer: *mut R::Sum,
}

impl<R: Real> Kernel for Part<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let [d, h, w] = self.call.axes;
        let length = w.output() * self.call.inner;
        let mut taps: Vec<(*const R, R::Sum)> = Vec::new();
        for row in self.range.clone() {
            let (i, j) = (row / h.output() % d.output(), row % h.output());
            // SAFETY: the row lies inside the result; that before it is of this range, and so of this thread.
            unsafe {
                let out = self.call.out.cast::<R>().add(row * length);
                if row > self.range.start && self.slow[1].again[j] {
                    std::ptr::copy_nonoverlapping(out.sub(length), out, length);
                    continue;
                }
                self.rows(row / h.output() / d.output(), i, j, &mut taps);
                let divisor = self.slow[0].divisor(i) * self.slow[1].divisor(j);
                self.row(&taps, divisor, out);
            }
        }
    }
}

impl<R: Real> Part<'_, R> {
    /// Whether rows are multiplied by weights.
    fn weighted(&self) -> bool {
        self.slow.iter().any(|axis| !axis.weight.is_empty())
    }

    /// The rows of the input that a row of the result is made of.
    #[inline(always)]
    unsafe fn rows(&self, outer: usize, i: usize, j: usize, taps: &mut Vec<(*const R, R::Sum)>) {
        let [d, h, w] = self.call.axes;
        taps.clear();
        for a in d.of(i) {
            let plane = outer * d.input + d.index[a] as usize;
            for b in h.of(j) {
                let at = (plane * h.input + h.index[b] as usize) * w.input * self.call.inner;
                // SAFETY: taps lie inside the input.
                taps.push((unsafe { self.call.input.cast::<R>().add(at) }, self.slow[0].weight(a) * self.slow[1].weight(b)));
            }
        }
    }

    #[inline(always)]
    unsafe fn row(&self, taps: &[(*const R, R::Sum)], divisor: R::Sum, out: *mut R) {
        let n = self.call.axes[2].input * self.call.inner;
        // SAFETY: rows are `n` long, and so is the buffer.
        unsafe {
            let row = match taps {
                [(one, _)] if R::WIDE && !self.weighted() => one.cast::<R::Sum>(),
                _ => {
                    combine::<R, R::Sum>(taps, self.weighted(), n, R::Sum::ONE, self.buffer);
                    self.buffer.cast_const()
                }
            };
            if self.call.inner == 1 { self.along(row, divisor, out) } else { self.across(row, divisor, out) }
        }
    }

    /// The last dimension's taps, where it is the innermost.
    #[inline(always)]
    unsafe fn along(&self, row: *const R::Sum, divisor: R::Sum, out: *mut R) {
        let even = self.last.even.clone();
        // SAFETY: taps lie inside the row.
        unsafe {
            for i in (0..even.start).chain(even.end..self.call.axes[2].output()) {
                self.one(row, divisor, i, out);
            }
            match self.last.step {
                1 => self.evenly::<1>(row, divisor, out),
                2 => self.evenly::<2>(row, divisor, out),
                _ => self.evenly::<0>(row, divisor, out),
            }
        }
    }

    #[inline(always)]
    unsafe fn one(&self, row: *const R::Sum, divisor: R::Sum, i: usize, out: *mut R) {
        let (w, last) = (self.call.axes[2], self.last);
        let mut sum = R::Sum::ZERO;
        for t in w.of(i) {
            // SAFETY: the caller's.
            let x = unsafe { *row.add(w.index[t] as usize) };
            sum += if last.weight.is_empty() { x } else { x * last.weight[t] };
        }
        let by = if last.divisor.is_empty() { divisor } else { divisor * last.divisor[i] };
        // SAFETY: the caller's.
        unsafe { *out.add(i) = R::narrow(if by == R::Sum::ONE { sum } else { sum / by }) };
    }

    #[inline(always)]
    unsafe fn evenly<const STEP: usize>(&self, row: *const R::Sum, divisor: R::Sum, out: *mut R) {
        let mut at = 0;
        let n = self.last.even.len();
        // SAFETY: the caller's.
        unsafe {
            while at + 16 <= n {
                self.block::<16, STEP>(row, divisor, at, out);
                at += 16;
            }
            while at + 4 <= n {
                self.block::<4, STEP>(row, divisor, at, out);
                at += 4;
            }
            while at < n {
                self.block::<1, STEP>(row, divisor, at, out);
                at += 1;
            }
        }
    }

    /// `N` results, the first of them number `at` of the even ones.
    #[inline(always)]
    unsafe fn block<const N: usize, const STEP: usize>(&self, row: *const R::Sum, divisor: R::Sum, at: usize, out: *mut R) {
        let last = self.last;
        let n = last.even.len();
        let mut sum = [R::Sum::ZERO; N];
        // SAFETY: the caller's; there are `taps` times `n` indices and weights, and as many divisors as results, where there are some.
        unsafe {
            for k in 0..last.taps {
                let index = last.index.as_ptr().add(k * n + at);
                let mut x = [R::Sum::ZERO; N];
                if STEP == 1 {
                    x = row.offset(*index as isize).cast::<[R::Sum; N]>().read_unaligned();
                } else if STEP > 1 {
                    let first = row.offset(*index as isize);
                    for (i, x) in x.iter_mut().enumerate() {
                        *x = *first.add(i * STEP);
                    }
                } else {
                    let index = index.cast::<[i32; N]>().read_unaligned();
                    for i in 0..N {
                        x[i] = *row.offset(index[i] as isize);
                    }
                }
                if !last.weights.is_empty() {
                    let w = last.weights.as_ptr().add(k * n + at).cast::<[R::Sum; N]>().read_unaligned();
                    for i in 0..N {
                        x[i] = x[i] * w[i];
                    }
                }
                for i in 0..N {
                    sum[i] += x[i];
                }
            }
            let first = last.even.start + at;
            if !last.divisor.is_empty() {
                let by = last.divisor.as_ptr().add(first).cast::<[R::Sum; N]>().read_unaligned();
                for i in 0..N {
                    sum[i] = sum[i] / (by[i] * divisor);
                }
            } else if divisor != R::Sum::ONE {
                for s in &mut sum {
                    *s = *s / divisor;
                }
            }
            put(&sum, out.add(first));
        }
    }

    /// The last dimension's taps, where another one lies inside it.
    #[inline(always)]
    unsafe fn across(&self, row: *const R::Sum, divisor: R::Sum, out: *mut R) {
        let (w, last, inner) = (self.call.axes[2], self.last, self.call.inner);
        let mut taps: Vec<(*const R::Sum, R::Sum)> = Vec::with_capacity(last.taps);
        for i in 0..w.output() {
            let by = if last.divisor.is_empty() { divisor } else { divisor * last.divisor[i] };
            taps.clear();
            // SAFETY: taps lie inside the row.
            unsafe {
                taps.extend(
                    w.of(i)
                        .map(|t| (row.add(w.index[t] as usize * inner), if last.weight.is_empty() { R::Sum::ONE } else { last.weight[t] })),
                );
                combine::<R::Sum, R>(&taps, !last.weight.is_empty(), inner, by, out.add(i * inner));
            }
        }
    }
}

#[inline(always)]
unsafe fn put<R: Real, const N: usize>(sum: &[R::Sum; N], out: *mut R) {
    let mut raw = [R::narrow(R::Sum::ZERO); N];
    for i in 0..N {
        raw[i] = R::narrow(sum[i]);
    }
    // SAFETY: the caller's.
    unsafe { out.cast::<[R; N]>().write_unaligned(raw) }
}

/// Sums of `n` elements each, times weights where `weighted`, divided by a number.
#[inline(always)]
unsafe fn combine<F: Real, T: Real<Sum = F::Sum>>(taps: &[(*const F, F::Sum)], weighted: bool, n: usize, by: F::Sum, out: *mut T) {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        while at + 16 <= n {
            combined::<F, T, 16>(taps, weighted, at, by, out);
            at += 16;
        }
        while at + 4 <= n {
            combined::<F, T, 4>(taps, weighted, at, by, out);
            at += 4;
        }
        while at < n {
            combined::<F, T, 1>(taps, weighted, at, by, out);
            at += 1;
        }
    }
}

#[inline(always)]
unsafe fn combined<F: Real, T: Real<Sum = F::Sum>, const N: usize>(
    taps: &[(*const F, F::Sum)],
    weighted: bool,
    at: usize,
    by: F::Sum,
    out: *mut T,
) {
    let mut sum = [F::Sum::ZERO; N];
    for &(from, weight) in taps {
        // SAFETY: the caller's.
        let x = unsafe { from.add(at).cast::<[F; N]>().read_unaligned() };
        if weighted {
            for i in 0..N {
                sum[i] += x[i].widen() * weight;
            }
        } else {
            for i in 0..N {
                sum[i] += x[i].widen();
            }
        }
    }
    if by != F::Sum::ONE {
        for s in &mut sum {
            *s = *s / by;
        }
    }
    // SAFETY: the caller's.
    unsafe { put(&sum, out.add(at)) }
}
