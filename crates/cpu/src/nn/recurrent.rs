//! Gates of recurrent cells: what a step does to its sums, in one pass forward and one backward.

use super::real::*;
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{Gates, GatesBackward};
use std::marker::PhantomData;
use std::ops::Range;

/// See [`Gates`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &Gates) -> Result<()> {
    with_real!("recurrent gates", call.dtype, R => {
        let shared = Shared(*call);
        parallel_for(call.rows, grain(call.width, 60), &|range| {
            let call = &{ &shared }.0;
            // SAFETY: each row is written by one thread; the rest is the caller's.
            unsafe { run(&Forward::<R> { call, range, dtype: PhantomData }) }
        });
        Ok(())
    })
}

/// See [`GatesBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &GatesBackward) -> Result<()> {
    with_real!("recurrent gates", call.dtype, R => {
        let shared = Shared(*call);
        parallel_for(call.rows, grain(call.width, 40), &|range| {
            let call = &{ &shared }.0;
            // SAFETY: as above.
            unsafe { run(&Backward::<R> { call, range, dtype: PhantomData }) }
        });
        Ok(())
    })
}

/// A row of several gates, block by block.
struct Row<R> {
    ptr: *mut R,
    width: usize,
}

impl<R: Real> Row<R> {
    /// Row `row` of operands with so many gates.
    #[inline(always)]
    fn of(ptr: *const u8, row: usize, gates: usize, width: usize) -> Row<R> {
        Row { ptr: ptr.cast::<R>().cast_mut().wrapping_add(row * gates * width), width }
    }

    #[inline(always)]
    unsafe fn load(&self, gate: usize, at: usize, len: usize) -> [R::Sum; LANES] {
        // SAFETY: the caller's.
        unsafe { load_some(self.ptr.add(gate * self.width + at).cast_const(), len, R::Sum::ZERO) }
    }

    #[inline(always)]
    unsafe fn store(&self, gate: usize, at: usize, len: usize, block: &[R::Sum; LANES]) {
        // SAFETY: the caller's.
        unsafe { store_some(self.ptr.add(gate * self.width + at), len, block) }
    }
}

struct Forward<'a, R> {
    call: &'a Gates,
    range: Range<usize>,
    dtype: PhantomData<R>,
}

impl<R: Real> Kernel for Forward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, width) = (self.call, self.call.width);
        let gates = if call.lstm { 4 } else { 3 };
        for row in self.range.clone() {
            let (a, b) = (Row::<R>::of(call.input, row, gates, width), Row::<R>::of(call.own, row, gates, width));
            let state = Row::<R>::of(call.state, row, 1, width);
            let (hidden, memory) = (Row::<R>::of(call.hidden, row, 1, width), Row::<R>::of(call.memory, row, 1, width));
            let active = Row::<R>::of(call.active, row, 4, width);
            let mut at = 0;
            while at < width {
                let len = LANES.min(width - at);
                // SAFETY: inside the rows.
                unsafe {
                    match call.lstm {
                        true => lstm(&a, &b, &state, &hidden, &memory, &active, at, len),
                        false => gru(&a, &b, &state, &hidden, &active, at, len),
                    }
                }
                at += LANES;
            }
        }
    }
}

/// The sum of two gates, through a function.
#[inline(always)]
unsafe fn gate<R: Real>(a: &Row<R>, b: &Row<R>, which: usize, at: usize, len: usize) -> [R::Sum; LANES] {
    // SAFETY: the caller's.
    let (mut sum, other) = unsafe { (a.load(which, at, len), b.load(which, at, len)) };
    for i in 0..LANES {
        sum[i] += other[i];
    }
    sum
}

#[inline(always)]
fn sigmoid<A: Sum>(x: &mut [A; LANES]) {
    for x in x {
        *x = x.sigmoid();
    }
}

#[inline(always)]
fn tanh<A: Sum>(x: &mut [A; LANES]) {
    for x in x {
        *x = x.tanh();
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // rows of one kernel
unsafe fn lstm<R: Real>(a: &Row<R>, b: &Row<R>, c: &Row<R>, hidden: &Row<R>, memory: &Row<R>, active: &Row<R>, at: usize, len: usize) {
    // SAFETY: the caller's.
    unsafe {
        let (mut i, mut f) = (gate(a, b, 0, at, len), gate(a, b, 1, at, len));
        let (mut g, mut o) = (gate(a, b, 2, at, len), gate(a, b, 3, at, len));
        sigmoid(&mut i);
        sigmoid(&mut f);
        tanh(&mut g);
        sigmoid(&mut o);
        let mut new = c.load(0, at, len);
        for l in 0..LANES {
            new[l] = f[l] * new[l] + i[l] * g[l];
        }
        memory.store(0, at, len, &new);
        for (k, block) in [&i, &f, &g, &o].into_iter().enumerate() {
            active.store(k, at, len, block);
        }
        tanh(&mut new);
        for l in 0..LANES {
            new[l] = o[l] * new[l];
        }
        hidden.store(0, at, len, &new);
    }
}

#[inline(always)]
unsafe fn gru<R: Real>(a: &Row<R>, b: &Row<R>, h: &Row<R>, hidden: &Row<R>, active: &Row<R>, at: usize, len: usize) {
    // SAFETY: the caller's.
    unsafe {
        let (mut r, mut z) = (gate(a, b, 0, at, len), gate(a, b, 1, at, len));
        sigmoid(&mut r);
        sigmoid(&mut z);
        let (mut n, own, h) = (a.load(2, at, len), b.load(2, at, len), h.load(0, at, len));
        for l in 0..LANES {
            n[l] += r[l] * own[l];
        }
        tanh(&mut n);
        let mut new = n;
        for l in 0..LANES {
            new[l] = (h[l] - n[l]) * z[l] + n[l];
        }
        hidden.store(0, at, len, &new);
        for (k, block) in [&r, &z, &n, &own].into_iter().enumerate() {
            active.store(k, at, len, block);
        }
    }
}

struct Backward<'a, R> {
    call: &'a GatesBackward,
    range: Range<usize>,
    dtype: PhantomData<R>,
}

impl<R: Real> Kernel for Backward<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (call, width) = (self.call, self.call.width);
        for row in self.range.clone() {
            let mut at = 0;
            while at < width {
                let len = LANES.min(width - at);
                // SAFETY: inside the rows.
                unsafe {
                    match call.lstm {
                        true => lstm_backward::<R>(call, row, at, len),
                        false => gru_backward::<R>(call, row, at, len),
                    }
                }
                at += LANES;
            }
        }
    }
}

#[inline(always)]
unsafe fn lstm_backward<R: Real>(call: &GatesBackward, row: usize, at: usize, len: usize) {
    let one = |ptr: *const u8| Row::<R>::of(ptr, row, 1, call.width);
    let (active, gates) = (Row::<R>::of(call.active, row, 4, call.width), Row::<R>::of(call.input, row, 4, call.width));
    let unit = R::Sum::ONE;
    // SAFETY: the caller's.
    unsafe {
        let [mut i, mut f, mut g, mut o] = [0, 1, 2, 3].map(|k| active.load(k, at, len));
        let (gh, mut gc) = (one(call.grad).load(0, at, len), one(call.grad_memory).load(0, at, len));
        let (c, mut t) = (one(call.state).load(0, at, len), one(call.memory).load(0, at, len));
        tanh(&mut t);
        let mut before = gc;
        for l in 0..LANES {
            gc[l] += gh[l] * o[l] * (unit - t[l] * t[l]);
            before[l] = gc[l] * f[l];
            let (through_i, through_g) = (gc[l] * g[l], gc[l] * i[l]);
            o[l] = gh[l] * t[l] * o[l] * (unit - o[l]);
            i[l] = through_i * i[l] * (unit - i[l]);
            f[l] = gc[l] * c[l] * f[l] * (unit - f[l]);
            g[l] = through_g * (unit - g[l] * g[l]);
        }
        for (k, block) in [&i, &f, &g, &o].into_iter().enumerate() {
            gates.store(k, at, len, block);
        }
        one(call.state_grad).store(0, at, len, &before);
    }
}

#[inline(always)]
unsafe fn gru_backward<R: Real>(call: &GatesBackward, row: usize, at: usize, len: usize) {
    let one = |ptr: *const u8| Row::<R>::of(ptr, row, 1, call.width);
    let active = Row::<R>::of(call.active, row, 4, call.width);
    let (input, own) = (Row::<R>::of(call.input, row, 3, call.width), Row::<R>::of(call.own, row, 3, call.width));
    let unit = R::Sum::ONE;
    // SAFETY: the caller's.
    unsafe {
        let [mut r, mut z, mut n, mut hn] = [0, 1, 2, 3].map(|k| active.load(k, at, len));
        let (g, mut h) = (one(call.grad).load(0, at, len), one(call.state).load(0, at, len));
        for l in 0..LANES {
            let dn = g[l] * (unit - z[l]) * (unit - n[l] * n[l]);
            let dz = g[l] * (h[l] - n[l]) * z[l] * (unit - z[l]);
            h[l] = g[l] * z[l];
            let reset = r[l];
            r[l] = dn * hn[l] * reset * (unit - reset);
            z[l] = dz;
            n[l] = dn;
            hn[l] = dn * reset;
        }
        for (k, [a, b]) in [[&r, &r], [&z, &z], [&n, &hn]].into_iter().enumerate() {
            input.store(k, at, len, a);
            own.store(k, at, len, b);
        }
        one(call.state_grad).store(0, at, len, &h);
    }
}
