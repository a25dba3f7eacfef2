//! Connectionist temporal classification: sums over all alignments, in logarithms, one member of the batch at a time.

use super::real::{Shared, Sum, grain};
use crate::pool::parallel_for;
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::layers::Ctc;

/// See [`Ctc`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &Ctc) -> Result<()> {
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 => each::<f32>(call, |m| m.forward()),
            DType::F64 => each::<f64>(call, |m| m.forward()),
            other => return Err(lacking("ctc_loss", other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}

/// The derivative: reads the gradient of the losses, writes that of the log-probabilities.
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &Ctc, grad: *const u8, out: *mut u8) -> Result<()> {
    let to = Shared((grad, out));
    // SAFETY: the caller's.
    unsafe {
        match call.dtype {
            DType::F32 => each::<f32>(call, |m| m.backward({ &to }.0.0.cast(), { &to }.0.1.cast())),
            DType::F64 => each::<f64>(call, |m| m.backward({ &to }.0.0.cast(), { &to }.0.1.cast())),
            other => return Err(lacking("ctc_loss_backward", other, DeviceKind::Cpu)),
        }
    }
    Ok(())
}

unsafe fn each<A: Sum>(call: &Ctc, f: impl Fn(&Member<A>) + Sync) {
    let [time, batch, classes] = call.sizes;
    let shared = Shared(*call);
    parallel_for(batch, grain(time * (2 * call.longest + 1 + classes), 40), &|range| {
        let call = &{ &shared }.0;
        for b in range {
            // SAFETY: lengths and labels are those of the batch.
            f(&unsafe { Member::of(call, b) });
        }
    });
}

/// One member of a batch.
struct Member<'a, A> {
    call: &'a Ctc,
    b: usize,
    time: usize,
    /// Labels with a blank before, between and behind them.
    states: Vec<usize>,
    x: *const A,
    alpha: *mut A,
}

/// `log(exp(a) + exp(b))`.
fn log_add<A: Sum>(a: A, b: A) -> A {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if most == -A::INFINITY { most } else { most + (<A as Sum>::ONE + (least - most).exp()).ln() }
}

impl<'a, A: Sum> Member<'a, A> {
    unsafe fn of(call: &'a Ctc, b: usize) -> Member<'a, A> {
        let [time, batch, _] = call.sizes;
        // SAFETY: the caller's.
        unsafe {
            let (steps, labels) = (*call.lengths.add(b) as usize, *call.lengths.add(batch + b) as usize);
            let mut states = vec![call.blank as usize; 2 * labels + 1];
            for i in 0..labels {
                states[2 * i + 1] = *call.labels.add(b * call.longest + i) as usize;
            }
            let alpha = call.alpha.cast::<A>().add(b * time * (2 * call.longest + 1));
            Member { call, b, time: steps, states, x: call.input.cast::<A>(), alpha }
        }
    }

    fn width(&self) -> usize {
        2 * self.call.longest + 1
    }

    /// The log-probability of class `c` at time `t`.
    fn score(&self, t: usize, c: usize) -> A {
        let [_, batch, classes] = self.call.sizes;
        // SAFETY: inside the input.
        unsafe { *self.x.add((t * batch + self.b) * classes + c) }
    }

    /// Whether state `s` may be entered from `s - 2`: it is a label, and not the one before.
    fn skips(&self, s: usize) -> bool {
        s >= 2 && s % 2 == 1 && self.states[s] != self.states[s - 2]
    }

    fn forward(&self) {
        let (n, width) = (self.states.len(), self.width());
        let all = self.call.sizes[0] * width;
        // SAFETY: `alpha` has a row of `width` for each time.
        let alpha = unsafe { std::slice::from_raw_parts_mut(self.alpha, all) };
        alpha.fill(-A::INFINITY);
        for t in 0..self.time {
            for s in 0..n {
                let score = self.score(t, self.states[s]);
                let before = match t {
                    0 if s < 2 => A::ZERO,
                    0 => -A::INFINITY,
                    _ => {
                        let row = &alpha[(t - 1) * width..];
                        let mut sum = row[s];
                        if s >= 1 {
                            sum = log_add(sum, row[s - 1]);
                        }
                        if self.skips(s) {
                            sum = log_add(sum, row[s - 2]);
                        }
                        sum
                    }
                };
                alpha[t * width + s] = before + score;
            }
        }
        let likelihood = match self.time {
            0 if n == 1 => A::ZERO,
            0 => -A::INFINITY,
            t => {
                let row = &alpha[(t - 1) * width..];
                if n == 1 { row[0] } else { log_add(row[n - 1], row[n - 2]) }
            }
        };
        // SAFETY: there is a loss for each member of the batch.
        unsafe { *self.call.loss.cast::<A>().add(self.b) = -likelihood };
    }

    fn backward(&self, grad: *const A, out: *mut A) {
        let [time, batch, classes] = self.call.sizes;
        let (n, width) = (self.states.len(), self.width());
        // SAFETY: there are a gradient and a loss for each member of the batch, and a row of `out` for each time.
        let (g, loss) = unsafe { (*grad.add(self.b), *self.call.loss.cast::<A>().add(self.b)) };
        // SAFETY: as above; rows are apart from each other.
        let row = |t: usize| unsafe { std::slice::from_raw_parts_mut(out.add((t * batch + self.b) * classes), classes) };
        let kept = if self.call.zero_infinity && loss == A::INFINITY { 0 } else { self.time };
        for t in kept..time {
            row(t).fill(A::ZERO);
        }
        let mut beta = vec![-A::INFINITY; n];
        for t in (0..kept).rev() {
            self.step_back(t, &mut beta);
            let sums = row(t);
            sums.fill(-A::INFINITY);
            for s in 0..n {
                // SAFETY: as in the forward pass.
                let both = unsafe { *self.alpha.add(t * width + s) } + beta[s];
                sums[self.states[s]] = log_add(sums[self.states[s]], both);
            }
            for (c, sum) in sums.iter_mut().enumerate() {
                let score = self.score(t, c);
                *sum = (score.exp() - (*sum + loss - score).exp()) * g;
            }
        }
    }

    /// From backward probabilities at `t + 1` to those at `t`, which hold the scores at `t`.
    fn step_back(&self, t: usize, beta: &mut [A]) {
        let n = beta.len();
        let last = t + 1 == self.time;
        for s in 0..n {
            let after = if last {
                if s + 2 >= n { A::ZERO } else { -A::INFINITY }
            } else {
                let mut sum = beta[s];
                if s + 1 < n {
                    sum = log_add(sum, beta[s + 1]);
                }
                if s + 2 < n && self.skips(s + 2) {
                    sum = log_add(sum, beta[s + 2]);
                }
                sum
            };
            beta[s] = after + self.score(t, self.states[s]);
        }
    }
}
