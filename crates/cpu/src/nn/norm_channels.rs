//! Batch and group norm, forward and backward, where the elements of a channel lie together.
//!
//! Moments are taken chunk by chunk, in two passes while a chunk is in the first-level cache, and put together after
//! Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979), in
//! `f64`: memory is read once for the statistics and once for the result. All sums run in an order of their own for
//! each channel or group, which one thread works on.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{ChannelNorm, ChannelNormBackward};
use std::marker::PhantomData;
use std::ops::Range;

/// Elements whose moments are taken together.
const CHUNK: usize = 2048;

/// Number, mean and sum of squares about the mean of some elements.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub count: f64,
    pub mean: f64,
    pub squares: f64,
}

impl Moments {
    pub const NONE: Moments = Moments { count: 0.0, mean: 0.0, squares: 0.0 };

    /// Of both.
    pub fn merge(self, other: Moments) -> Moments {
        if self.count == 0.0 {
            return other;
        }
        let count = self.count + other.count;
        let apart = other.mean - self.mean;
        let mean = self.mean + apart * (other.count / count);
        Moments { count, mean, squares: self.squares + other.squares + apart * apart * (self.count * other.count / count) }
    }

    /// The variance, divided by the number of elements.
    pub fn variance(self) -> f64 {
        self.squares / self.count.max(1.0)
    }

    /// Of `runs` runs of `n` elements, `step` apart.
    #[inline(always)]
    unsafe fn of<R: Real>(x: *const R, runs: usize, step: usize, n: usize) -> Moments {
        let count = R::Sum::of((runs * n) as f64);
        let (mut sum, mut squares) = (Chains::new(), Chains::new());
        // SAFETY: the caller's.
        unsafe {
            for run in 0..runs {
                add_row::<R>(&mut sum, x.add(run * step), n);
            }
            let mean = sum.total() / count;
            for run in 0..runs {
                add_squares::<R>(&mut squares, x.add(run * step), n, mean);
            }
            let squares = squares.total();
            if mean.is_finite() && !squares.is_finite() {
                return Moments::wide(x, runs, step, n);
            }
            Moments { count: count.to_f64(), mean: mean.to_f64(), squares: squares.to_f64() }
        }
    }

    /// Of elements whose squares leave the range of their sum's type.
    #[cold]
    #[inline(never)]
    pub unsafe fn wide<R: Real>(x: *const R, runs: usize, step: usize, n: usize) -> Moments {
        // SAFETY: the caller's.
        let all = (0..runs * n).map(|i| unsafe { *x.add(i / n * step + i % n) }.widen().to_f64());
        all.fold(Moments::NONE, |sum, x| sum.merge(Moments { count: 1.0, mean: x, squares: 0.0 }))
    }
}

/// Where the elements of one set of statistics lie: the same number of runs, of channels of `behind` elements each.
#[derive(Clone, Copy)]
struct Place {
    runs: usize,
    step: usize,
    start: usize,
    /// The first channel, and how many there are to a run.
    channel: usize,
    channels: usize,
}

impl Place {
    fn of(sizes: [usize; 3], groups: usize, j: usize) -> Place {
        let [batch, channels, behind] = sizes;
        if groups == 0 {
            return Place { runs: batch, step: channels * behind, start: j * behind, channel: j, channels: 1 };
        }
        let each = channels / groups;
        Place { runs: 1, step: 0, start: j * each * behind, channel: j % groups * each, channels: each }
    }

    /// The channel and the first element of each block of `behind` elements.
    #[inline(always)]
    fn blocks(self, behind: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..self.runs * self.channels).map(move |i| {
            let (run, c) = (i / self.channels, i % self.channels);
            (self.channel + c, self.start + run * self.step + c * behind)
        })
    }
}

/// How many sets of statistics there are.
fn sets(sizes: [usize; 3], groups: usize) -> usize {
    if groups == 0 { sizes[1] } else { sizes[0] * groups }
}

/// See [`ChannelNorm`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &ChannelNorm) -> Result<()> {
    if call.last {
        // SAFETY: the caller's.
        return unsafe { super::norm_channels_last::forward(call) };
    }
    with_real!("batch_norm", call.dtype, R => {
        let n = sets(call.sizes, call.groups);
        let each = call.sizes.iter().product::<usize>() / n.max(1);
        let call = Shared(*call);
        parallel_for(n, grain(each, 3), &|range| {
            let call = &call;
            // SAFETY: the caller's.
            unsafe { run(&Forward::<R> { call: &call.0, range, dtype: PhantomData }) }
        });
        Ok(())
    })
}

struct Forward<'a, R> {
    call: &'a ChannelNorm,
    range: Range<usize>,
    dtype: PhantomData<R>,
}

impl<R: Real> Kernel for Forward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let call = self.call;
        let behind = call.sizes[2];
        let (x, out) = (call.input.cast::<R>(), call.out.cast::<R>());
        let (weight, bias) = (call.weight.cast::<R::Sum>(), call.bias.cast::<R::Sum>());
        for j in self.range.clone() {
            let place = Place::of(call.sizes, call.groups, j);
            // SAFETY: blocks lie inside the operands; there is a weight and a bias for each channel.
            unsafe {
                let (mean, rstd) = statistics::<R>(call, place, j);
                for (c, at) in place.blocks(behind) {
                    let scale = if weight.is_null() { rstd } else { rstd * *weight.add(c) };
                    let shift = if bias.is_null() { R::Sum::ZERO } else { *bias.add(c) };
                    normalise::<R>(behind, x.add(at), out.add(at), mean, scale, shift);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn statistics<R: Real>(call: &ChannelNorm, place: Place, j: usize) -> (R::Sum, R::Sum) {
    let (mean, rstd) = (call.mean.cast::<R::Sum>(), call.rstd.cast::<R::Sum>());
    // SAFETY: there is a place for each set; the runs lie inside the input.
    unsafe {
        if call.given {
            return (*mean.add(j), *rstd.add(j));
        }
        let x = call.input.cast::<R>();
        let len = place.channels * call.sizes[2];
        let mut all = Moments::NONE;
        // Several short runs at once, or a part of a long one.
        let (runs, n) = if len < CHUNK { (CHUNK / len, len) } else { (1, CHUNK) };
        let mut run = 0;
        while run < place.runs {
            let runs = runs.min(place.runs - run);
            let mut at = 0;
            while at < len {
                let n = n.min(len - at);
                all = all.merge(Moments::of::<R>(x.add(place.start + run * place.step + at), runs, place.step, n));
                at += n;
            }
            run += runs;
        }
        let r = 1.0 / (all.variance() + call.eps).sqrt();
        *mean.add(j) = R::Sum::of(all.mean);
        *rstd.add(j) = R::Sum::of(r);
        if !call.variance.is_null() {
            *call.variance.cast::<R::Sum>().add(j) = R::Sum::of(all.variance());
        }
        (R::Sum::of(all.mean), R::Sum::of(r))
    }
}

/// The last `n % LANES` elements of a row of `n`, which are not none; `rest` in the other lanes. A row that is long enough is
/// read back from its end, so that no loop over single elements is needed.
#[inline(always)]
unsafe fn tail<R: Real>(x: *const R, n: usize, rest: R::Sum) -> [R::Sum; LANES] {
    let len = n % LANES;
    // SAFETY: the row is `n` long.
    unsafe {
        if n < LANES {
            return load_some(x, len, rest);
        }
        let mut block = load(x.add(n - LANES));
        for (i, b) in block.iter_mut().enumerate() {
            *b = if i < LANES - len { rest } else { *b };
        }
        block
    }
}

/// Adds the elements of a row.
#[inline(always)]
unsafe fn add_row<R: Real>(sum: &mut Chains<R::Sum>, x: *const R, n: usize) {
    // SAFETY: the row is `n` long.
    unsafe {
        for at in (0..n / LANES * LANES).step_by(LANES) {
            sum.add(&load(x.add(at)));
        }
        if !n.is_multiple_of(LANES) {
            sum.add(&tail(x, n, R::Sum::ZERO));
        }
    }
}

/// Adds the squares of the elements of a row, less the mean.
#[inline(always)]
unsafe fn add_squares<R: Real>(sum: &mut Chains<R::Sum>, x: *const R, n: usize, mean: R::Sum) {
    // SAFETY: the row is `n` long.
    unsafe {
        for at in (0..n / LANES * LANES).step_by(LANES) {
            let mut x = load(x.add(at));
            for x in &mut x {
                *x = *x - mean;
            }
            sum.add_product(&x, &x);
        }
        if !n.is_multiple_of(LANES) {
            let mut x = tail(x, n, mean);
            for x in &mut x {
                *x = *x - mean;
            }
            sum.add_product(&x, &x);
        }
    }
}

/// `(x - mean) * scale + shift`.
#[inline(always)]
unsafe fn normalise<R: Real>(n: usize, x: *const R, out: *mut R, mean: R::Sum, scale: R::Sum, shift: R::Sum) {
    // SAFETY: both are `n` long.
    unsafe {
        let mut at = 0;
        while at + LANES <= n {
            normalise_block(LANES, x.add(at), out.add(at), mean, scale, shift);
            at += LANES;
        }
        if at < n {
            let first = n.saturating_sub(LANES);
            normalise_block(n - first, x.add(first), out.add(first), mean, scale, shift);
        }
    }
}

#[inline(always)]
unsafe fn normalise_block<R: Real>(len: usize, x: *const R, out: *mut R, mean: R::Sum, scale: R::Sum, shift: R::Sum) {
    // SAFETY: both are `len` long.
    unsafe {
        let mut block = load_some(x, len, R::Sum::ZERO);
        for b in &mut block {
            *b = (*b - mean).fma(scale, shift);
        }
        store_some(out, len, &block);
    }
}

/// See [`ChannelNormBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &ChannelNormBackward) -> Result<()> {
    if call.last {
        // SAFETY: the caller's.
        return unsafe { super::norm_channels_last::backward(call) };
    }
    with_real!("batch_norm_backward", call.dtype, R => {
        type A<R> = <R as Real>::Sum;
        let n = sets(call.sizes, call.groups);
        let each = call.sizes.iter().product::<usize>() / n.max(1);
        let grouped = call.groups > 0;
        // Of each member of the batch, two sums for each channel.
        let mut sums: Vec<[A<R>; 2]> = vec![[A::<R>::ZERO; 2]; if grouped { call.sizes[0] * call.sizes[1] } else { call.sizes[1] }];
        let shared = Shared((*call, sums.as_mut_ptr()));
        parallel_for(n, grain(each, 5), &|range| {
            let shared = &shared;
            // SAFETY: each set has sums and blocks of its own; the rest is the caller's.
            unsafe { run(&Backward::<R> { call: &shared.0.0, range, sums: shared.0.1 }) }
        });
        // SAFETY: the caller's.
        unsafe { total::<A<R>>(call, &sums) };
        Ok(())
    })
}

/// Adds the sums of the members of the batch into the gradients of weight and bias.
unsafe fn total<A: Sum>(call: &ChannelNormBackward, sums: &[[A; 2]]) {
    let channels = call.sizes[1];
    for (which, out) in [call.weight_grad, call.bias_grad].into_iter().enumerate().filter(|(_, out)| !out.is_null()) {
        for c in 0..channels {
            let sum = sums.iter().skip(c).step_by(channels).fold(A::ZERO, |sum, s| sum + s[which]);
            // SAFETY: there is a place for each channel.
            unsafe { *out.cast::<A>().add(c) = sum };
        }
    }
}

struct Backward<'a, R: Real> {
    call: &'a ChannelNormBackward,
    range: Range<usize>,
    sums: *mut [R::Sum; 2],
}

impl<R: Real> Kernel for Backward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let call = self.call;
        let [_, channels, behind] = call.sizes;
        let (g, x, weight) = (call.grad.cast::<R>(), call.input.cast::<R>(), call.weight.cast::<R::Sum>());
        for j in self.range.clone() {
            let place = Place::of(call.sizes, call.groups, j);
            // SAFETY: as in the forward pass.
            unsafe {
                let (mean, rstd) = (*call.mean.cast::<R::Sum>().add(j), *call.rstd.cast::<R::Sum>().add(j));
                let of = |c: usize| if weight.is_null() { R::Sum::ONE } else { *weight.add(c) };
                let (mut along, mut level) = (0.0, 0.0);
                let mut chains = [Chains::new(), Chains::new()];
                for (c, at) in place.blocks(behind) {
                    add_products::<R>(&mut chains, behind, g.add(at), x.add(at), mean);
                    if call.groups > 0 {
                        let [product, sum] = std::mem::replace(&mut chains, [Chains::new(), Chains::new()]).map(Chains::total);
                        let product = product * rstd;
                        along += (product * of(c)).to_f64();
                        level += (sum * of(c)).to_f64();
                        *self.sums.add(at / behind / channels * channels + c) = [product, sum];
                    }
                }
                if call.groups == 0 {
                    let [product, sum] = chains.map(Chains::total);
                    let product = product * rstd;
                    along = (product * of(j)).to_f64();
                    level = (sum * of(j)).to_f64();
                    *self.sums.add(j) = [product, sum];
                }
                if call.input_grad.is_null() {
                    continue;
                }
                let count = (place.runs * place.channels * behind) as f64;
                let (along, level) =
                    if call.given { (R::Sum::ZERO, R::Sum::ZERO) } else { (R::Sum::of(along / count), R::Sum::of(level / count)) };
                for (c, at) in place.blocks(behind) {
                    let out = call.input_grad.cast::<R>().add(at);
                    gradient::<R>(behind, g.add(at), x.add(at), out, [mean, of(c) * rstd, level * rstd, along * rstd * rstd]);
                }
            }
        }
    }
}

/// Adds `g * (x - mean)` to the first sum, `g` to the second.
#[inline(always)]
unsafe fn add_products<R: Real>([products, plain]: &mut [Chains<R::Sum>; 2], n: usize, g: *const R, x: *const R, mean: R::Sum) {
    // SAFETY: both are `n` long.
    unsafe {
        for at in (0..n / LANES * LANES).step_by(LANES) {
            let (grad, mut x) = (load(g.add(at)), load(x.add(at)));
            for x in &mut x {
                *x = *x - mean;
            }
            products.add_product(&grad, &x);
            plain.add(&grad);
        }
        if !n.is_multiple_of(LANES) {
            let (grad, mut x) = (tail(g, n, R::Sum::ZERO), tail(x, n, mean));
            for x in &mut x {
                *x = *x - mean;
            }
            products.add_product(&grad, &x);
            plain.add(&grad);
        }
    }
}

/// `scale * g - level - (x - mean) * along`.
#[inline(always)]
unsafe fn gradient<R: Real>(n: usize, g: *const R, x: *const R, out: *mut R, factors: [R::Sum; 4]) {
    // SAFETY: all are `n` long.
    unsafe {
        let mut at = 0;
        while at + LANES <= n {
            gradient_block(LANES, g.add(at), x.add(at), out.add(at), factors);
            at += LANES;
        }
        if at < n {
            let first = n.saturating_sub(LANES);
            gradient_block(n - first, g.add(first), x.add(first), out.add(first), factors);
        }
    }
}

#[inline(always)]
unsafe fn gradient_block<R: Real>(len: usize, g: *const R, x: *const R, out: *mut R, [mean, scale, level, along]: [R::Sum; 4]) {
    // SAFETY: all are `len` long.
    unsafe {
        let (mut grad, x) = (load_some(g, len, R::Sum::ZERO), load_some(x, len, R::Sum::ZERO));
        for i in 0..LANES {
            grad[i] = grad[i].fma(scale, -level) - (x[i] - mean) * along;
        }
        store_some(out, len, &grad);
    }
}
