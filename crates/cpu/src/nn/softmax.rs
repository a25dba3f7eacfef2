//! Softmax and its logarithm, forward and backward: each element is read and written once from memory.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{LogSumExp, Softmax, SoftmaxBackward};
use std::ops::Range;

/// See [`Softmax`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &Softmax) -> Result<()> {
    let [outer, n, inner] = call.sizes;
    with_real!("softmax", call.dtype, R => {
        let (x, out) = (call.input.cast::<R>(), call.out.cast::<R>());
        // SAFETY: the caller's.
        unsafe {
            along(outer, n, inner, 8, |range, at| {
                let all = Forward::<R> { n, inner, log: call.log, x, out };
                if inner == 1 { run(&Rows { all, range }) } else { run(&Columns { all, range, at }) }
            });
        }
        Ok(())
    })
}

/// See [`SoftmaxBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &SoftmaxBackward) -> Result<()> {
    let [outer, n, inner] = call.sizes;
    with_real!("softmax_backward", call.dtype, R => {
        let (y, g, out) = (call.output.cast::<R>(), call.grad.cast::<R>(), call.out.cast::<R>());
        // SAFETY: the caller's.
        unsafe {
            along(outer, n, inner, if call.log { 8 } else { 3 }, |range, at| {
                let all = Backward::<R> { n, inner, log: call.log, y, g, out };
                if inner == 1 { run(&Rows { all, range }) } else { run(&Columns { all, range, at }) }
            });
        }
        Ok(())
    })
}

/// See [`LogSumExp`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn logsumexp(call: &LogSumExp) -> Result<()> {
    let [rows, n] = call.sizes;
    with_real!("logsumexp", call.dtype, R => {
        let shared = Shared((call.input.cast::<R>(), call.out.cast::<R>()));
        parallel_for(rows, grain(n, 8), &|range| {
            let (x, out) = { &shared }.0;
            // SAFETY: the caller's.
            unsafe { run(&LogSums { n, range, x, out }) }
        });
        Ok(())
    })
}

struct LogSums<R> {
    n: usize,
    range: Range<usize>,
    x: *const R,
    out: *mut R,
}

impl<R: Real> Kernel for LogSums<R> {
    #[inline(always)]
    unsafe fn run(&self) {
        for row in self.range.clone() {
            // SAFETY: the row lies inside the operands.
            unsafe {
                let x = self.x.add(row * self.n);
                let most = row_max(self.n, x);
                // Infinities are kept out of differences: of nothing but minus infinity, and beside plus infinity.
                let base = if most.is_finite() { most } else { R::Sum::ZERO };
                let sum = row_exp_sum(self.n, x, base, std::ptr::null_mut());
                *self.out.add(row) = R::narrow(sum.ln() + base);
            }
        }
    }
}

/// Shares rows (`inner` 1: a range of them) or columns (a range of blocks of columns of one matrix, whose number comes with it) among the threads.
unsafe fn along(outer: usize, n: usize, inner: usize, work: usize, f: impl Fn(Range<usize>, usize)) {
    let f = Shared(f);
    if inner == 1 {
        parallel_for(outer, grain(n, work), &|range| {
            // The whole of it, which may be shared, not the field.
            let f = &f;
            f.0(range, 0)
        });
        return;
    }
    let blocks = inner.div_ceil(LANES);
    parallel_for(outer * blocks, grain(n * LANES, work), &|range| {
        let f = &f;
        for block in range {
            let (matrix, first) = (block / blocks, block % blocks * LANES);
            f.0(first..(first + LANES).min(inner), matrix);
        }
    });
}

struct Forward<R> {
    n: usize,
    inner: usize,
    log: bool,
    x: *const R,
    out: *mut R,
}

struct Backward<R> {
    n: usize,
    inner: usize,
    log: bool,
    y: *const R,
    g: *const R,
    out: *mut R,
}

struct Rows<C> {
    all: C,
    range: Range<usize>,
}

struct Columns<C> {
    all: C,
    range: Range<usize>,
    at: usize,
}

impl<R: Real> Kernel for Rows<Forward<R>> {
    #[inline(always)]
    unsafe fn run(&self) {
        let n = self.all.n;
        for row in self.range.clone() {
            // SAFETY: the row lies inside the operands.
            unsafe { forward_row::<R>(n, self.all.log, self.all.x.add(row * n), self.all.out.add(row * n)) }
        }
    }
}

/// The largest number of a row; NaN gives way.
///
/// # Safety
/// `n` elements are readable.
#[inline(always)]
pub unsafe fn row_max<R: Real>(n: usize, x: *const R) -> R::Sum {
    let mut most = [-R::Sum::INFINITY; LANES];
    let mut at = 0;
    while at < n {
        // SAFETY: inside the row.
        let block = unsafe { load_some(x.add(at), LANES.min(n - at), -R::Sum::INFINITY) };
        for i in 0..LANES {
            most[i] = larger(most[i], block[i]);
        }
        at += LANES;
    }
    fold(most, larger)
}

/// The sum of `exp(x - most)` over a row, whose terms are also written where `terms` is not null.
///
/// # Safety
/// `n` elements are readable, and writable.
#[inline(always)]
pub unsafe fn row_exp_sum<R: Real>(n: usize, x: *const R, most: R::Sum, terms: *mut R) -> R::Sum {
    let mut sum = Chains::new();
    let mut at = 0;
    while at < n {
        let len = LANES.min(n - at);
        // SAFETY: inside the row.
        let mut block = unsafe { load_some(x.add(at), len, -R::Sum::INFINITY) };
        for i in 0..LANES {
            block[i] = (block[i] - most).exp();
        }
        if len < LANES {
            // -inf - most is no -inf where most is infinite too.
            for term in &mut block[len..] {
                *term = R::Sum::ZERO;
            }
        }
        if !terms.is_null() {
            // SAFETY: inside the row.
            unsafe { store_some(terms.add(at), len, &block) };
        }
        sum.add(&block);
        at += LANES;
    }
    sum.total()
}

#[inline(always)]
unsafe fn forward_row<R: Real>(n: usize, log: bool, x: *const R, out: *mut R) {
    // SAFETY: the caller's.
    unsafe {
        let most = row_max(n, x);
        let keep = R::WIDE && !log;
        let sum = row_exp_sum(n, x, most, if keep { out } else { std::ptr::null_mut() });
        let log_sum = sum.ln();
        let mut at = 0;
        while at < n {
            let len = LANES.min(n - at);
            let mut block = load_some(if keep { out.cast_const().add(at) } else { x.add(at) }, len, R::Sum::ZERO);
            if log {
                for i in 0..LANES {
                    block[i] = (block[i] - most) - log_sum;
                }
            } else if keep {
                for i in 0..LANES {
                    block[i] = block[i] / sum;
                }
            } else {
                for i in 0..LANES {
                    block[i] = (block[i] - most).exp() / sum;
                }
            }
            store_some(out.add(at), len, &block);
            at += LANES;
        }
    }
}

impl<R: Real> Kernel for Columns<Forward<R>> {
    #[inline(always)]
    unsafe fn run(&self) {
        let Forward { n, inner, log, x, out } = self.all;
        let (first, len) = (self.at * n * inner + self.range.start, self.range.len());
        let mut most = [-R::Sum::INFINITY; LANES];
        let mut sum = [R::Sum::ZERO; LANES];
        // SAFETY: `len` columns of a matrix of `n` rows lie inside the operands.
        unsafe {
            for row in 0..n {
                let block = load_some(x.add(first + row * inner), len, R::Sum::ZERO);
                for i in 0..LANES {
                    most[i] = larger(most[i], block[i]);
                }
            }
            for row in 0..n {
                let block = load_some(x.add(first + row * inner), len, R::Sum::ZERO);
                for i in 0..LANES {
                    sum[i] += (block[i] - most[i]).exp();
                }
            }
            let mut log_sum = sum;
            for s in &mut log_sum {
                *s = s.ln();
            }
            for row in 0..n {
                let mut block = load_some(x.add(first + row * inner), len, R::Sum::ZERO);
                if log {
                    for i in 0..LANES {
                        block[i] = (block[i] - most[i]) - log_sum[i];
                    }
                } else {
                    for i in 0..LANES {
                        block[i] = (block[i] - most[i]).exp() / sum[i];
                    }
                }
                store_some(out.add(first + row * inner), len, &block);
            }
        }
    }
}

impl<R: Real> Kernel for Rows<Backward<R>> {
    #[inline(always)]
    unsafe fn run(&self) {
        let Backward { n, log, y, g, out, .. } = self.all;
        for row in self.range.clone() {
            let start = row * n;
            let mut sum = Chains::<R::Sum>::new();
            let mut at = 0;
            // SAFETY: the row lies inside the operands.
            unsafe {
                while at < n {
                    let len = LANES.min(n - at);
                    let grad = load_some(g.add(start + at), len, R::Sum::ZERO);
                    if log {
                        sum.add(&grad);
                    } else {
                        sum.add_product(&grad, &load_some(y.add(start + at), len, R::Sum::ZERO));
                    }
                    at += LANES;
                }
                let sum = sum.total();
                at = 0;
                while at < n {
                    let len = LANES.min(n - at);
                    let grad = load_some(g.add(start + at), len, R::Sum::ZERO);
                    let value = load_some(y.add(start + at), len, R::Sum::ZERO);
                    store_some(out.add(start + at), len, &input_grad(log, &grad, &value, &[sum; LANES]));
                    at += LANES;
                }
            }
        }
    }
}

#[inline(always)]
fn input_grad<A: Sum>(log: bool, grad: &[A; LANES], value: &[A; LANES], sum: &[A; LANES]) -> [A; LANES] {
    let mut out = [A::ZERO; LANES];
    if log {
        for i in 0..LANES {
            out[i] = grad[i] - value[i].exp() * sum[i];
        }
    } else {
        for i in 0..LANES {
            out[i] = value[i] * (grad[i] - sum[i]);
        }
    }
    out
}

impl<R: Real> Kernel for Columns<Backward<R>> {
    #[inline(always)]
    unsafe fn run(&self) {
        let Backward { n, inner, log, y, g, out } = self.all;
        let (first, len) = (self.at * n * inner + self.range.start, self.range.len());
        let mut sum = [R::Sum::ZERO; LANES];
        // SAFETY: `len` columns of a matrix of `n` rows lie inside the operands.
        unsafe {
            for row in 0..n {
                let grad = load_some(g.add(first + row * inner), len, R::Sum::ZERO);
                let value = load_some(y.add(first + row * inner), len, R::Sum::ZERO);
                for i in 0..LANES {
                    sum[i] = if log { sum[i] + grad[i] } else { grad[i].fma(value[i], sum[i]) };
                }
            }
            for row in 0..n {
                let grad = load_some(g.add(first + row * inner), len, R::Sum::ZERO);
                let value = load_some(y.add(first + row * inner), len, R::Sum::ZERO);
                store_some(out.add(first + row * inner), len, &input_grad(log, &grad, &value, &sum));
            }
        }
    }
}
