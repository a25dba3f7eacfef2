//! Batch norm where channels lie innermost: `[rows, channels]`. A fixed number of parts of the rows have sums of
//! their own, which are added in order.

use super::norm_channels::Moments;
use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{ChannelNorm, ChannelNormBackward};
use std::marker::PhantomData;
use std::ops::Range;

/// Rows whose moments are taken together.
const ROWS: usize = 32;

fn sizes(sizes: [usize; 3]) -> (usize, usize) {
    (sizes[0] * sizes[2], sizes[1])
}

/// How many parts the rows have: a function of their number alone.
fn parts(rows: usize) -> usize {
    (rows / 128).clamp(1, 16)
}

fn part(rows: usize, i: usize) -> Range<usize> {
    let each = rows.div_ceil(parts(rows));
    (i * each).min(rows)..((i + 1) * each).min(rows)
}

/// Two numbers for each channel, for each part of the rows: the work of `f` on a part.
fn partial<A: Sum>(rows: usize, channels: usize, f: &(dyn Fn(Range<usize>, *mut A) + Sync)) -> Vec<A> {
    let mut all = vec![A::ZERO; parts(rows) * 2 * channels];
    let shared = Shared(all.as_mut_ptr());
    let each = rows.div_ceil(parts(rows)) * channels;
    parallel_for(parts(rows), grain(each, 4), &|range| {
        let shared = &shared;
        for i in range {
            f(part(rows, i), shared.0.wrapping_add(i * 2 * channels));
        }
    });
    all
}

/// See [`ChannelNorm`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &ChannelNorm) -> Result<()> {
    with_real!("batch_norm", call.dtype, R => {
        type A<R> = <R as Real>::Sum;
        let (rows, channels) = sizes(call.sizes);
        if !call.given {
            let shared = Shared(*call);
            let each = partial::<A<R>>(rows, channels, &|rows, out| {
                let shared = &shared;
                // SAFETY: each part has rows and sums of its own; the rest is the caller's.
                unsafe { run(&Statistics::<R> { call: &shared.0, rows, out }) }
            });
            // SAFETY: the caller's.
            unsafe { combine::<R>(call, rows, &each) };
        }
        // SAFETY: there is a place for each channel.
        let scale: Vec<A<R>> = (0..channels).map(|c| unsafe {
            let rstd = *call.rstd.cast::<A<R>>().add(c);
            if call.weight.is_null() { rstd } else { rstd * *call.weight.cast::<A<R>>().add(c) }
        }).collect();
        let call = Shared(*call);
        parallel_for(rows, grain(channels, 2), &|range| {
            let call = &call;
            // SAFETY: each row is written by one thread; the rest is the caller's.
            unsafe { run(&Normalise::<R> { call: &call.0, rows: range, scale: &scale, dtype: PhantomData }) }
        });
        Ok(())
    })
}

/// Means and sums of squares about them, of a part of the rows.
struct Statistics<'a, R: Real> {
    call: &'a ChannelNorm,
    rows: Range<usize>,
    out: *mut R::Sum,
}

impl<R: Real> Kernel for Statistics<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let channels = self.call.sizes[1];
        let x = self.call.input.cast::<R>();
        let mut first = self.rows.start;
        while first < self.rows.end {
            let rows = ROWS.min(self.rows.end - first);
            let before = first - self.rows.start;
            let mut at = 0;
            while at < channels {
                let len = LANES.min(channels - at);
                // SAFETY: inside the rows and the sums.
                unsafe {
                    let (means, squares) = (self.out.add(at), self.out.add(channels + at));
                    let block = moments::<R>(rows, len, x.add(first * channels + at), channels);
                    let (mut m, mut s) = (load_sums(means, len), load_sums(squares, len));
                    let share = R::Sum::of(rows as f64 / (before + rows) as f64);
                    let spread = R::Sum::of(before as f64) * share;
                    for i in 0..LANES {
                        let apart = block.0[i] - m[i];
                        m[i] += apart * share;
                        s[i] += block.1[i] + apart * apart * spread;
                    }
                    store_sums(means, len, &m);
                    store_sums(squares, len, &s);
                }
                at += LANES;
            }
            first += rows;
        }
    }
}

/// Mean and sum of squares about it, for each of `len` channels over some rows.
#[inline(always)]
unsafe fn moments<R: Real>(rows: usize, len: usize, x: *const R, step: usize) -> ([R::Sum; LANES], [R::Sum; LANES]) {
    let (mut mean, mut squares) = ([R::Sum::ZERO; LANES], [R::Sum::ZERO; LANES]);
    for row in 0..rows {
        // SAFETY: the caller's.
        let x = unsafe { load_some(x.add(row * step), len, R::Sum::ZERO) };
        for i in 0..LANES {
            mean[i] += x[i];
        }
    }
    let factor = R::Sum::ONE / R::Sum::of(rows as f64);
    for m in &mut mean {
        *m = *m * factor;
    }
    for row in 0..rows {
        // SAFETY: the caller's.
        let x = unsafe { load_some(x.add(row * step), len, R::Sum::ZERO) };
        for i in 0..LANES {
            let apart = x[i] - mean[i];
            squares[i] = apart.fma(apart, squares[i]);
        }
    }
    (mean, squares)
}

/// Puts the moments of all parts together and writes the statistics.
unsafe fn combine<R: Real>(call: &ChannelNorm, rows: usize, each: &[R::Sum]) {
    let channels = call.sizes[1];
    for c in 0..channels {
        let mut all = Moments::NONE;
        for (i, sums) in each.chunks_exact(2 * channels).enumerate() {
            let count = part(rows, i).len() as f64;
            if count > 0.0 {
                all = all.merge(Moments { count, mean: sums[c].to_f64(), squares: sums[channels + c].to_f64() });
            }
        }
        // SAFETY: there is a place for each channel, and an element of it in each row.
        unsafe {
            if all.mean.is_finite() && !all.squares.is_finite() {
                all = Moments::wide(call.input.cast::<R>().add(c), rows, channels, 1);
            }
            *call.mean.cast::<R::Sum>().add(c) = R::Sum::of(all.mean);
            *call.rstd.cast::<R::Sum>().add(c) = R::Sum::of(1.0 / (all.variance() + call.eps).sqrt());
            if !call.variance.is_null() {
                *call.variance.cast::<R::Sum>().add(c) = R::Sum::of(all.variance());
            }
        }
    }
}

struct Normalise<'a, R: Real> {
    call: &'a ChannelNorm,
    rows: Range<usize>,
    scale: &'a [R::Sum],
    dtype: PhantomData<R>,
}

impl<R: Real> Kernel for Normalise<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, channels) = (self.call, self.call.sizes[1]);
        for row in self.rows.clone() {
            let mut at = 0;
            while at < channels {
                let (len, first) = (LANES.min(channels - at), row * channels + at);
                // SAFETY: inside the row and the channels.
                unsafe {
                    let mut x = load_some(call.input.cast::<R>().add(first), len, R::Sum::ZERO);
                    let mean = load_sums(call.mean.cast::<R::Sum>().cast_const().add(at), len);
                    let scale = load_sums(self.scale.as_ptr().add(at), len);
                    let shift =
                        if call.bias.is_null() { [R::Sum::ZERO; LANES] } else { load_sums(call.bias.cast::<R::Sum>().add(at), len) };
                    for i in 0..LANES {
                        x[i] = (x[i] - mean[i]).fma(scale[i], shift[i]);
                    }
                    store_some(call.out.cast::<R>().add(first), len, &x);
                }
                at += LANES;
            }
        }
    }
}

/// See [`ChannelNormBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &ChannelNormBackward) -> Result<()> {
    with_real!("batch_norm_backward", call.dtype, R => {
        type A<R> = <R as Real>::Sum;
        let (rows, channels) = sizes(call.sizes);
        let shared = Shared(*call);
        let each = partial::<A<R>>(rows, channels, &|rows, out| {
            let shared = &shared;
            // SAFETY: each part has rows and sums of its own; the rest is the caller's.
            unsafe { run(&Sums::<R> { call: &shared.0, rows, out }) }
        });
        // SAFETY: the caller's.
        let factors = unsafe { factors::<A<R>>(call, rows, &each) };
        if !call.input_grad.is_null() {
            parallel_for(rows, grain(channels, 3), &|range| {
                let shared = &shared;
                // SAFETY: each row is written by one thread; the rest is the caller's.
                unsafe { run(&Gradient::<R> { call: &shared.0, rows: range, factors: &factors, dtype: PhantomData }) }
            });
        }
        Ok(())
    })
}

/// The sums of `g * (x - mean)` and of `g`, of a part of the rows.
struct Sums<'a, R: Real> {
    call: &'a ChannelNormBackward,
    rows: Range<usize>,
    out: *mut R::Sum,
}

impl<R: Real> Kernel for Sums<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, channels) = (self.call, self.call.sizes[1]);
        let (g, x) = (call.grad.cast::<R>(), call.input.cast::<R>());
        let mut first = self.rows.start;
        while first < self.rows.end {
            let last = (first + ROWS).min(self.rows.end);
            let mut at = 0;
            while at < channels {
                let len = LANES.min(channels - at);
                // SAFETY: inside the rows, the channels and the sums.
                unsafe {
                    let mean = load_sums(call.mean.cast::<R::Sum>().add(at), len);
                    let (mut products, mut plain) = ([R::Sum::ZERO; LANES], [R::Sum::ZERO; LANES]);
                    for row in first..last {
                        let g = load_some(g.add(row * channels + at), len, R::Sum::ZERO);
                        let x = load_some(x.add(row * channels + at), len, R::Sum::ZERO);
                        for i in 0..LANES {
                            products[i] = g[i].fma(x[i] - mean[i], products[i]);
                            plain[i] += g[i];
                        }
                    }
                    for (block, out) in [(products, self.out.add(at)), (plain, self.out.add(channels + at))] {
                        let mut sum = load_sums(out, len);
                        for i in 0..LANES {
                            sum[i] += block[i];
                        }
                        store_sums(out, len, &sum);
                    }
                }
                at += LANES;
            }
            first = last;
        }
    }
}

/// Writes the gradients of weight and bias, and gives for each channel `scale`, `level` and `along` of
/// `scale * g - level - (x - mean) * along`.
unsafe fn factors<A: Sum>(call: &ChannelNormBackward, rows: usize, each: &[A]) -> Vec<A> {
    let channels = call.sizes[1];
    let mut out = vec![A::ZERO; 3 * channels];
    for c in 0..channels {
        let add = |at: usize| each.chunks_exact(2 * channels).fold(0.0, |sum, part| sum + part[at].to_f64());
        // SAFETY: there is a place for each channel.
        unsafe {
            let rstd = (*call.rstd.cast::<A>().add(c)).to_f64();
            let weight = if call.weight.is_null() { 1.0 } else { (*call.weight.cast::<A>().add(c)).to_f64() };
            let (product, plain) = (add(c) * rstd, add(channels + c));
            if !call.weight_grad.is_null() {
                *call.weight_grad.cast::<A>().add(c) = A::of(product);
            }
            if !call.bias_grad.is_null() {
                *call.bias_grad.cast::<A>().add(c) = A::of(plain);
            }
            let scale = weight * rstd;
            out[c] = A::of(scale);
            if !call.given {
                out[channels + c] = A::of(scale * plain / rows as f64);
                out[2 * channels + c] = A::of(scale * rstd * product / rows as f64);
            }
        }
    }
    out
}

struct Gradient<'a, R: Real> {
    call: &'a ChannelNormBackward,
    rows: Range<usize>,
    factors: &'a [R::Sum],
    dtype: PhantomData<R>,
}

impl<R: Real> Kernel for Gradient<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, channels) = (self.call, self.call.sizes[1]);
        let (g, x, out) = (call.grad.cast::<R>(), call.input.cast::<R>(), call.input_grad.cast::<R>());
        let factors = self.factors.as_ptr();
        for row in self.rows.clone() {
            let mut at = 0;
            while at < channels {
                let (len, first) = (LANES.min(channels - at), row * channels + at);
                // SAFETY: inside the row and the channels.
                unsafe {
                    let (mut g, x) = (load_some(g.add(first), len, R::Sum::ZERO), load_some(x.add(first), len, R::Sum::ZERO));
                    let mean = load_sums(call.mean.cast::<R::Sum>().add(at), len);
                    let (scale, level) = (load_sums(factors.add(at), len), load_sums(factors.add(channels + at), len));
                    let along = load_sums(factors.add(2 * channels + at), len);
                    for i in 0..LANES {
                        g[i] = g[i].fma(scale[i], -level[i]) - (x[i] - mean[i]) * along[i];
                    }
                    store_some(out.add(first), len, &g);
                }
                at += LANES;
            }
        }
    }
}
