//! Steps of optimizers: all parameters of a call as one loop over blocks.
//!
//! Each element goes through the roundings that the step has when it is written in tensor operations, one after the
//! other, so that a model trained here and one trained under PyTorch take the same path to the last bit.

use crate::nn::real::{Kernel, LANES, Real, Shared, Sum, load_some, run, store_some, with_real};
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{AdamStep, AdamTensor, SgdStep, SgdTensor};
use std::ops::Range;

/// Elements of a block of work.
const BLOCK: usize = 8 * 1024;

/// Calls `f` with the number of a tensor and a range of its elements, for all of them, on all threads.
fn over_blocks(sizes: impl Iterator<Item = usize>, f: &(dyn Fn(usize, Range<usize>) + Sync)) {
    let blocks: Vec<(usize, Range<usize>)> =
        sizes.enumerate().flat_map(|(tensor, n)| (0..n).step_by(BLOCK).map(move |at| (tensor, at..(at + BLOCK).min(n)))).collect();
    let elements: usize = blocks.iter().map(|(_, range)| range.len()).sum();
    // Small tensors make small blocks: so many blocks are worth handing over as hold a full block's elements.
    let grain = (blocks.len() * BLOCK).div_ceil(elements.max(1)).max(1);
    parallel_for(blocks.len(), grain, &|range| {
        for (tensor, elements) in &blocks[range] {
            f(*tensor, elements.clone());
        }
    });
}

/// See [`AdamStep`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn adam(call: &AdamStep) -> Result<()> {
    for tensor in call.tensors {
        with_real!("adam", tensor.dtype, _R => Ok(()))?;
    }
    let shared = Shared(*call);
    over_blocks(call.tensors.iter().map(|t| t.n), &|tensor, range| {
        let call = &{ &shared }.0;
        let tensor = &call.tensors[tensor];
        let _: Result<()> = with_real!("adam", tensor.dtype, R => {
            // SAFETY: blocks are apart; the rest is the caller's.
            unsafe { run(&Adam::<R> { call, tensor, range, dtype: std::marker::PhantomData }) };
            Ok(())
        });
    });
    Ok(())
}

struct Adam<'a, R> {
    call: &'a AdamStep<'a>,
    tensor: &'a AdamTensor,
    range: Range<usize>,
    dtype: std::marker::PhantomData<R>,
}

impl<R: Real> Kernel for Adam<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (c, t) = (self.call, self.tensor);
        let (param, grad) = (t.param.cast::<R>(), t.grad.cast::<R>());
        let (mean, square, largest) = (t.mean.cast::<R>(), t.square.cast::<R>(), t.largest.cast::<R>());
        let of = R::Sum::of;
        // A factor of an addition is rounded to the dtype first.
        let (decay, added) = (of(1.0 - c.lr * c.weight_decay), R::round(of(c.weight_decay)));
        let (blend, from_end) = (of(1.0 - c.beta1), 1.0 - c.beta1 >= 0.5);
        let blend = if from_end { blend - R::Sum::ONE } else { blend };
        let (beta2, share) = (of(c.beta2), of(1.0 - c.beta2));
        let (correction, eps, step) = (of(t.correction), of(c.eps), of(-t.step_size));
        let mut at = self.range.start;
        while at < self.range.end {
            let len = LANES.min(self.range.end - at);
            // SAFETY: inside the operands.
            unsafe {
                let mut p = load_some(param.add(at), len, R::Sum::ZERO);
                let mut g = load_some(grad.add(at), len, R::Sum::ZERO);
                let mut m = load_some(mean.add(at), len, R::Sum::ZERO);
                let mut v = load_some(square.add(at), len, R::Sum::ZERO);
                if c.maximize {
                    g = g.map(|x| -x);
                }
                if c.weight_decay != 0.0 && c.decoupled {
                    for i in 0..LANES {
                        p[i] = R::round(p[i] * decay);
                    }
                } else if c.weight_decay != 0.0 {
                    for i in 0..LANES {
                        g[i] = R::round(p[i].fma(added, g[i]));
                    }
                }
                for i in 0..LANES {
                    let base = if from_end { g[i] } else { m[i] };
                    m[i] = R::round(blend.fma(g[i] - m[i], base));
                    let kept = R::round(v[i] * beta2);
                    v[i] = R::round((share * g[i]).fma(g[i], kept));
                }
                store_some(mean.add(at), len, &m);
                store_some(square.add(at), len, &v);
                if !largest.is_null() {
                    let most = load_some(largest.add(at), len, R::Sum::ZERO);
                    for i in 0..LANES {
                        // A NaN stays one.
                        // NaN is unequal to itself.
                        #[allow(clippy::eq_op)]
                        let keeps = most[i] > v[i] || most[i] != most[i];
                        v[i] = if keeps { most[i] } else { v[i] };
                    }
                    store_some(largest.add(at), len, &v);
                }
                for i in 0..LANES {
                    let root = R::round(R::round(v[i].sqrt()) / correction);
                    let denominator = R::round(root + eps);
                    p[i] = R::round(p[i] + step * m[i] / denominator);
                }
                store_some(param.add(at), len, &p);
            }
            at += LANES;
        }
    }
}

/// See [`SgdStep`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn sgd(call: &SgdStep) -> Result<()> {
    for tensor in call.tensors {
        with_real!("sgd", tensor.dtype, _R => Ok(()))?;
    }
    let shared = Shared(*call);
    over_blocks(call.tensors.iter().map(|t| t.n), &|tensor, range| {
        let call = &{ &shared }.0;
        let tensor = &call.tensors[tensor];
        let _: Result<()> = with_real!("sgd", tensor.dtype, R => {
            // SAFETY: blocks are apart; the rest is the caller's.
            unsafe { run(&Sgd::<R> { call, tensor, range, dtype: std::marker::PhantomData }) };
            Ok(())
        });
    });
    Ok(())
}

struct Sgd<'a, R> {
    call: &'a SgdStep<'a>,
    tensor: &'a SgdTensor,
    range: Range<usize>,
    dtype: std::marker::PhantomData<R>,
}

impl<R: Real> Kernel for Sgd<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (c, t) = (self.call, self.tensor);
        let (param, grad, buffer) = (t.param.cast::<R>(), t.grad.cast::<R>(), t.buffer.cast::<R>());
        let of = R::Sum::of;
        // A factor of an addition is rounded to the dtype first, that of a product is not.
        let rounded = |x: f64| R::round(of(x));
        let (momentum, added, share) = (of(c.momentum), rounded(c.momentum), rounded(1.0 - c.dampening));
        let (decay, step) = (rounded(c.weight_decay), rounded(-c.lr));
        let mut at = self.range.start;
        while at < self.range.end {
            let len = LANES.min(self.range.end - at);
            // SAFETY: inside the operands.
            unsafe {
                let mut p = load_some(param.add(at), len, R::Sum::ZERO);
                let mut g = load_some(grad.add(at), len, R::Sum::ZERO);
                if c.maximize {
                    g = g.map(|x| -x);
                }
                if c.weight_decay != 0.0 {
                    for i in 0..LANES {
                        g[i] = R::round(p[i].fma(decay, g[i]));
                    }
                }
                if !buffer.is_null() {
                    let mut b = g;
                    if !t.fresh {
                        b = load_some(buffer.add(at), len, R::Sum::ZERO);
                        for i in 0..LANES {
                            b[i] = R::round(g[i].fma(share, R::round(b[i] * momentum)));
                        }
                    }
                    store_some(buffer.add(at), len, &b);
                    if c.nesterov {
                        for i in 0..LANES {
                            g[i] = R::round(b[i].fma(added, g[i]));
                        }
                    } else {
                        g = b;
                    }
                }
                for i in 0..LANES {
                    p[i] = R::round(g[i].fma(step, p[i]));
                }
                store_some(param.add(at), len, &p);
            }
            at += LANES;
        }
    }
}
