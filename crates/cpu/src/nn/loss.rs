//! Cross entropy between rows of scores and classes: forward reads each score once from memory, backward reads and
//! writes each once.

use super::real::*;
use super::softmax::{row_exp_sum, row_max};
use crate::pool::parallel_for;
use flambeau_base::{Error, Result};
use flambeau_engine::backend::layers::{CrossEntropy, CrossEntropyGrad, CrossEntropyOut};
use std::ops::Range;

/// See [`CrossEntropy`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &CrossEntropy, out: &CrossEntropyOut) -> Result<()> {
    let [rows, classes] = call.sizes;
    // SAFETY: there is a class for each row.
    unsafe { check_classes(call)? };
    with_real!("cross_entropy", call.dtype, R => {
        type A<R> = <R as Real>::Sum;
        let mut terms = vec![[A::<R>::ZERO; 2]; rows];
        let shared = Shared((*call, out.lse.cast::<A<R>>(), terms.as_mut_ptr()));
        parallel_for(rows, grain(classes, 8), &|range| {
            let (call, lse, terms) = &{ &shared }.0;
            // SAFETY: each row has terms of its own; the rest is the caller's.
            unsafe { run(&Forward::<R> { call, range, lse: *lse, terms: *terms }) }
        });
        // SAFETY: the results are as large as the reduction says.
        unsafe { reduce::<R>(&terms, out) };
        Ok(())
    })
}

/// `IndexError` for a class that is not there.
unsafe fn check_classes(call: &CrossEntropy) -> Result<()> {
    let [rows, classes] = call.sizes;
    for row in 0..rows {
        // SAFETY: the caller's.
        let class = unsafe { *call.target.add(row) };
        if class != call.ignore_index && (class < 0 || class >= classes as i64) {
            return Err(Error::index(format!(
                "cross_entropy: Target {class} is out of bounds for {classes} classes (target {row}); classes are 0 to {}, and {} is ignored",
                classes as i64 - 1,
                call.ignore_index
            )));
        }
    }
    Ok(())
}

struct Forward<'a, R: Real> {
    call: &'a CrossEntropy,
    range: Range<usize>,
    lse: *mut R::Sum,
    /// Loss and weight of each row.
    terms: *mut [R::Sum; 2],
}

impl<R: Real> Kernel for Forward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let n = self.call.sizes[1];
        let w = self.call.weight.cast::<R>();
        let smoothing = R::Sum::of(self.call.smoothing);
        for row in self.range.clone() {
            // SAFETY: the row lies inside the operands; classes were checked.
            unsafe {
                let x = self.call.input.cast::<R>().add(row * n);
                let most = row_max(n, x);
                let log_sum = row_exp_sum(n, x, most, std::ptr::null_mut()).ln();
                *self.lse.add(row) = most + log_sum;
                let class = *self.call.target.add(row);
                if class == self.call.ignore_index {
                    *self.terms.add(row) = [R::Sum::ZERO; 2];
                    continue;
                }
                let weight = if w.is_null() { R::Sum::ONE } else { (*w.add(class as usize)).widen() };
                let mut loss = -(((*x.add(class as usize)).widen() - most) - log_sum) * weight;
                if self.call.smoothing != 0.0 {
                    let spread = weighted_sum::<R>(n, x, most, log_sum, w) / R::Sum::of(n as f64);
                    loss = loss * (R::Sum::ONE - smoothing) + spread * smoothing;
                }
                *self.terms.add(row) = [loss, weight];
            }
        }
    }
}

/// Minus the sum of weighted log-probabilities of a row.
#[inline(always)]
unsafe fn weighted_sum<R: Real>(n: usize, x: *const R, most: R::Sum, log_sum: R::Sum, w: *const R) -> R::Sum {
    let mut sum = Chains::new();
    let mut at = 0;
    while at < n {
        let len = LANES.min(n - at);
        // SAFETY: inside the row; the weights are as long.
        unsafe {
            let mut block = load_some(x.add(at), len, R::Sum::ZERO);
            for b in &mut block {
                *b = log_sum - (*b - most);
            }
            let mut weights = [R::Sum::ZERO; LANES];
            if w.is_null() {
                for weight in &mut weights[..len] {
                    *weight = R::Sum::ONE;
                }
            } else {
                weights = load_some(w.add(at), len, R::Sum::ZERO);
            }
            if len < LANES {
                for b in &mut block[len..] {
                    *b = R::Sum::ZERO;
                }
            }
            sum.add_product(&block, &weights);
        }
        at += LANES;
    }
    sum.total()
}

/// Sums the rows' losses and weights, in chains of a fixed order.
unsafe fn reduce<R: Real>(terms: &[[R::Sum; 2]], out: &CrossEntropyOut) {
    let mut sums = [R::Sum::ZERO; 2];
    for chunk in terms.chunks(128) {
        let mut part = [R::Sum::ZERO; 2];
        for term in chunk {
            part[0] += term[0];
            part[1] += term[1];
        }
        sums[0] += part[0];
        sums[1] += part[1];
    }
    let (loss, total) = (out.loss.cast::<R>(), out.total.cast::<R::Sum>());
    // SAFETY: the caller's.
    unsafe {
        *total = sums[1];
        match out.reduction {
            0 => {
                for (row, term) in terms.iter().enumerate() {
                    *loss.add(row) = R::narrow(term[0]);
                }
            }
            1 => *loss = R::narrow(sums[0] / sums[1]),
            _ => *loss = R::narrow(sums[0]),
        }
    }
}

/// See [`CrossEntropyGrad`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &CrossEntropy, grad: &CrossEntropyGrad) -> Result<()> {
    let [rows, classes] = call.sizes;
    with_real!("cross_entropy_backward", call.dtype, R => {
        // SAFETY: the weights are as many as the classes.
        let weights = unsafe { total_weight::<R>(classes, call.weight.cast()) };
        let shared = Shared((*call, *grad));
        parallel_for(rows, grain(classes, 8), &|range| {
            let (call, grad) = &{ &shared }.0;
            // SAFETY: the caller's.
            unsafe { run(&Backward::<R> { call, grad, range, weights }) }
        });
        Ok(())
    })
}

unsafe fn total_weight<R: Real>(classes: usize, w: *const R) -> R::Sum {
    if w.is_null() {
        return R::Sum::of(classes as f64);
    }
    // SAFETY: the caller's.
    (0..classes).fold(R::Sum::ZERO, |sum, i| sum + unsafe { *w.add(i) }.widen())
}

struct Backward<'a, R: Real> {
    call: &'a CrossEntropy,
    grad: &'a CrossEntropyGrad,
    range: Range<usize>,
    /// The sum of all classes' weights.
    weights: R::Sum,
}

impl<R: Real> Kernel for Backward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, n) = (self.call, self.call.sizes[1]);
        let (x, w, g) = (call.input.cast::<R>(), call.weight.cast::<R>(), self.grad.grad.cast::<R>());
        let (lse, total) = (self.grad.lse.cast::<R::Sum>(), self.grad.total.cast::<R::Sum>());
        let out = self.grad.out.cast::<R>();
        let (one, smoothing) = (R::Sum::ONE, R::Sum::of(call.smoothing));
        for row in self.range.clone() {
            // SAFETY: the row lies inside the operands; classes were checked by the forward pass.
            unsafe {
                let (x, out) = (x.add(row * n), out.add(row * n));
                let class = *call.target.add(row);
                if class == call.ignore_index {
                    for i in 0..n {
                        *out.add(i) = R::narrow(R::Sum::ZERO);
                    }
                    continue;
                }
                let scale = match self.grad.reduction {
                    0 => (*g.add(row)).widen(),
                    1 => (*g).widen() / *total,
                    _ => (*g).widen(),
                };
                let weight = if w.is_null() { one } else { (*w.add(class as usize)).widen() };
                let own = scale * weight * (one - smoothing);
                let each = scale * smoothing / R::Sum::of(n as f64);
                // exp(score - lse) times this, less the parts of the target.
                let factor = own + each * self.weights;
                probabilities::<R>(n, x, *lse.add(row), factor, out);
                if call.smoothing != 0.0 {
                    for i in 0..n {
                        let weight = if w.is_null() { one } else { (*w.add(i)).widen() };
                        let p = ((*x.add(i)).widen() - *lse.add(row)).exp() * factor - each * weight;
                        *out.add(i) = R::narrow(if i == class as usize { p - own } else { p });
                    }
                } else {
                    let p = ((*x.add(class as usize)).widen() - *lse.add(row)).exp();
                    *out.add(class as usize) = R::narrow((p - one) * factor);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn probabilities<R: Real>(n: usize, x: *const R, lse: R::Sum, factor: R::Sum, out: *mut R) {
    let mut at = 0;
    while at < n {
        let len = LANES.min(n - at);
        // SAFETY: inside the row.
        unsafe {
            let mut block = load_some(x.add(at), len, lse);
            for b in &mut block {
                *b = (*b - lse).exp() * factor;
            }
            store_some(out.add(at), len, &block);
        }
        at += LANES;
    }
}
