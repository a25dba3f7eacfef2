//! Normalisation of rows: layer norm and root mean square norm, forward and backward.
//!
//! Variances are taken in a second pass, about the mean, while the row is in the cache. Rows whose squares leave the
//! range of numbers are scaled by a power of two first. The gradients of weight and bias are sums over all rows: a
//! fixed number of parts, each summed in order of its rows, are added in order.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{Norm, NormBackward};
use std::ops::Range;

/// See [`Norm`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &Norm) -> Result<()> {
    let [rows, n] = call.sizes;
    with_real!("layer_norm", call.dtype, R => {
        let call = Shared(*call);
        parallel_for(rows, grain(n, 3), &|range| {
            let call = &call;
            // SAFETY: the caller's.
            unsafe { run(&Forward::<R> { call: &call.0, range, dtype: std::marker::PhantomData }) }
        });
        Ok(())
    })
}

struct Forward<'a, R> {
    call: &'a Norm,
    range: Range<usize>,
    dtype: std::marker::PhantomData<R>,
}

impl<R: Real> Kernel for Forward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let call = self.call;
        let n = call.sizes[1];
        let (x, out) = (call.input.cast::<R>(), call.out.cast::<R>());
        let (mean, rstd) = (call.mean.cast::<R::Sum>(), call.rstd.cast::<R::Sum>());
        for row in self.range.clone() {
            // SAFETY: the row lies inside the operands.
            unsafe {
                let x = x.add(row * n);
                let stats = statistics::<R>(n, x, call.centred, call.eps);
                normalise::<R>(n, x, out.add(row * n), &stats, call.weight.cast(), call.bias.cast());
                if call.centred {
                    *mean.add(row) = stats.mean * stats.scale;
                }
                *rstd.add(row) = stats.rstd / stats.scale;
            }
        }
    }
}

/// Mean and inverse standard deviation of `x / scale`.
struct Statistics<A> {
    scale: A,
    mean: A,
    rstd: A,
}

#[inline(always)]
unsafe fn statistics<R: Real>(n: usize, x: *const R, centred: bool, eps: f64) -> Statistics<R::Sum> {
    let one = R::Sum::ONE;
    // SAFETY: the caller's.
    unsafe {
        let (mean, variance) = moments::<R>(n, x, centred, one);
        let shifted = variance + R::Sum::of(eps);
        if shifted.is_finite() && (shifted > R::Sum::TINY * R::Sum::of(1e8) || variance == R::Sum::ZERO && eps != 0.0) {
            return Statistics { scale: one, mean, rstd: one / shifted.sqrt() };
        }
        scaled_statistics::<R>(n, x, centred, eps)
    }
}

/// The statistics of a row whose squares leave the range of numbers.
#[cold]
#[inline(never)]
unsafe fn scaled_statistics<R: Real>(n: usize, x: *const R, centred: bool, eps: f64) -> Statistics<R::Sum> {
    // SAFETY: the caller's.
    unsafe {
        let mut most = R::Sum::ZERO;
        for i in 0..n {
            most = larger(most, (*x.add(i)).widen().abs());
        }
        let scale = most.power_of_two();
        let (mean, variance) = moments::<R>(n, x, centred, R::Sum::ONE / scale);
        let shifted = variance + R::Sum::of(eps / scale.to_f64() / scale.to_f64());
        Statistics { scale, mean, rstd: R::Sum::ONE / shifted.sqrt() }
    }
}

/// Mean and variance (about the mean; about zero where not `centred`) of `x * factor`.
#[inline(always)]
unsafe fn moments<R: Real>(n: usize, x: *const R, centred: bool, factor: R::Sum) -> (R::Sum, R::Sum) {
    let count = R::Sum::of(n as f64);
    let mut mean = R::Sum::ZERO;
    // SAFETY: the row lies inside the operands.
    unsafe {
        if centred {
            let mut sum = Chains::new();
            let mut at = 0;
            while at < n {
                let mut block = load_some(x.add(at), LANES.min(n - at), R::Sum::ZERO);
                for b in &mut block {
                    *b = *b * factor;
                }
                sum.add(&block);
                at += LANES;
            }
            mean = sum.total() / count;
        }
        let mut sum = Chains::new();
        let mut at = 0;
        while at < n {
            let len = LANES.min(n - at);
            let mut block = load_some(x.add(at), len, R::Sum::ZERO);
            for b in &mut block {
                *b = *b * factor - mean;
            }
            if len < LANES {
                for b in &mut block[len..] {
                    *b = R::Sum::ZERO;
                }
            }
            sum.add_product(&block, &block);
            at += LANES;
        }
        (mean, sum.total() / count)
    }
}

#[inline(always)]
unsafe fn normalise<R: Real>(n: usize, x: *const R, out: *mut R, stats: &Statistics<R::Sum>, weight: *const R, bias: *const R) {
    let factor = R::Sum::ONE / stats.scale;
    let mut at = 0;
    while at < n {
        let len = LANES.min(n - at);
        // SAFETY: the row, the weights and the biases are `n` long.
        unsafe {
            let mut block = load_some(x.add(at), len, R::Sum::ZERO);
            for b in &mut block {
                *b = (*b * factor - stats.mean) * stats.rstd;
            }
            if !weight.is_null() {
                let w = load_some(weight.add(at), len, R::Sum::ZERO);
                for i in 0..LANES {
                    block[i] = block[i] * w[i];
                }
            }
            if !bias.is_null() {
                let b = load_some(bias.add(at), len, R::Sum::ZERO);
                for i in 0..LANES {
                    block[i] += b[i];
                }
            }
            store_some(out.add(at), len, &block);
        }
        at += LANES;
    }
}

/// How many parts the sums over rows have: a function of the number of rows alone.
fn parts(rows: usize) -> usize {
    (rows / 16).clamp(1, 16)
}

/// See [`NormBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &NormBackward) -> Result<()> {
    let [rows, n] = call.sizes;
    with_real!("layer_norm_backward", call.dtype, R => {
        type A<R> = <R as Real>::Sum;
        let sums = !call.weight_grad.is_null() || !call.bias_grad.is_null();
        let parts = parts(rows);
        let mut partial: Vec<A<R>> = vec![A::<R>::ZERO; if sums { parts * 2 * n } else { 0 }];
        let shared = Shared((*call, partial.as_mut_ptr()));
        let each = rows.div_ceil(parts);
        parallel_for(parts, (grain(n, 4) / each.max(1)).max(1), &|range| {
            let shared = &shared;
            for part in range {
                let rows = (part * each).min(rows)..((part + 1) * each).min(rows);
                let partial = if sums { shared.0.1.wrapping_add(part * 2 * n) } else { std::ptr::null_mut() };
                // SAFETY: each part has rows and sums of its own; the rest is the caller's.
                unsafe { run(&Backward::<R> { call: &shared.0.0, rows, partial }) }
            }
        });
        if sums {
            // SAFETY: the caller's.
            unsafe {
                run(&Total::<R> { parts, n, partial: &partial, offset: 0, out: call.weight_grad.cast() });
                run(&Total::<R> { parts, n, partial: &partial, offset: n, out: call.bias_grad.cast() });
            }
        }
        Ok(())
    })
}

struct Backward<'a, R: Real> {
    call: &'a NormBackward,
    rows: Range<usize>,
    /// Sums for weights, then for biases; null where they are not wanted.
    partial: *mut R::Sum,
}

impl<R: Real> Kernel for Backward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let call = self.call;
        let n = call.sizes[1];
        let (x, g, w) = (call.input.cast::<R>(), call.grad.cast::<R>(), call.weight.cast::<R>());
        let (mean, rstd) = (call.mean.cast::<R::Sum>(), call.rstd.cast::<R::Sum>());
        for row in self.rows.clone() {
            // SAFETY: the row lies inside the operands.
            unsafe {
                let mean = if call.centred { *mean.add(row) } else { R::Sum::ZERO };
                let row = Row::<R> { n, x: x.add(row * n), g: g.add(row * n), w, mean, rstd: *rstd.add(row) };
                let out = if call.input_grad.is_null() {
                    std::ptr::null_mut()
                } else {
                    call.input_grad.cast::<R>().add(row.g.offset_from(g) as usize)
                };
                row.gradients(self.partial, out, call.centred);
            }
        }
    }
}

struct Row<R: Real> {
    n: usize,
    x: *const R,
    g: *const R,
    w: *const R,
    mean: R::Sum,
    rstd: R::Sum,
}

impl<R: Real> Row<R> {
    /// Normalised values and gradients from `at` on; zeros past the end.
    #[inline(always)]
    unsafe fn block(&self, at: usize) -> ([R::Sum; LANES], [R::Sum; LANES]) {
        let len = LANES.min(self.n - at);
        // SAFETY: inside the row.
        unsafe {
            let mut hat = load_some(self.x.add(at), len, self.mean);
            for h in &mut hat {
                *h = (*h - self.mean) * self.rstd;
            }
            (hat, load_some(self.g.add(at), len, R::Sum::ZERO))
        }
    }

    /// Adds what the row gives to the gradients of weight and bias.
    #[inline(always)]
    unsafe fn add_to(&self, sums: *mut R::Sum, at: usize, hat: &[R::Sum; LANES], grad: &[R::Sum; LANES]) {
        let len = LANES.min(self.n - at);
        // SAFETY: there are twice `n` sums.
        unsafe {
            let (for_weight, for_bias) = (sums.add(at), sums.add(self.n + at));
            let (mut w, mut b) = (load_sums(for_weight, len), load_sums(for_bias, len));
            for i in 0..LANES {
                w[i] = grad[i].fma(hat[i], w[i]);
                b[i] += grad[i];
            }
            store_sums(for_weight, len, &w);
            store_sums(for_bias, len, &b);
        }
    }

    /// Multiplies gradients from `at` on by the weights.
    #[inline(always)]
    unsafe fn weigh(&self, at: usize, grad: &mut [R::Sum; LANES]) {
        if self.w.is_null() {
            return;
        }
        // SAFETY: the weights are as long as the row.
        let w = unsafe { load_some(self.w.add(at), LANES.min(self.n - at), R::Sum::ZERO) };
        for i in 0..LANES {
            grad[i] = grad[i] * w[i];
        }
    }

    /// Adds to the sums of weight and bias and writes the row's own gradient, where they are wanted (not null).
    #[inline(always)]
    unsafe fn gradients(&self, sums: *mut R::Sum, out: *mut R, centred: bool) {
        let (mut along, mut total) = (Chains::new(), Chains::new());
        let mut at = 0;
        // SAFETY: inside the row.
        unsafe {
            while at < self.n {
                let (hat, mut grad) = self.block(at);
                if !sums.is_null() {
                    self.add_to(sums, at, &hat, &grad);
                }
                self.weigh(at, &mut grad);
                along.add_product(&hat, &grad);
                total.add(&grad);
                at += LANES;
            }
            if out.is_null() {
                return;
            }
            let count = R::Sum::of(self.n as f64);
            let along = along.total() / count;
            let total = if centred { total.total() / count } else { R::Sum::ZERO };
            at = 0;
            while at < self.n {
                let (hat, mut grad) = self.block(at);
                self.weigh(at, &mut grad);
                for i in 0..LANES {
                    grad[i] = ((grad[i] - total) - hat[i] * along) * self.rstd;
                }
                store_some(out.add(at), LANES.min(self.n - at), &grad);
                at += LANES;
            }
        }
    }
}

/// Adds the parts of the sums over rows.
struct Total<'a, R: Real> {
    parts: usize,
    n: usize,
    partial: &'a [R::Sum],
    offset: usize,
    out: *mut R,
}

impl<R: Real> Kernel for Total<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        if self.out.is_null() {
            return;
        }
        let mut at = 0;
        while at < self.n {
            let len = LANES.min(self.n - at);
            let mut sum = [R::Sum::ZERO; LANES];
            for part in 0..self.parts {
                let from = part * 2 * self.n + self.offset + at;
                // SAFETY: each part has twice `n` sums.
                let more = unsafe { load_sums(self.partial.as_ptr().add(from), len) };
                for i in 0..LANES {
                    sum[i] += more[i];
                }
            }
            // SAFETY: the result is `n` long.
            unsafe { store_some(self.out.add(at), len, &sum) };
            at += LANES;
        }
    }
}
