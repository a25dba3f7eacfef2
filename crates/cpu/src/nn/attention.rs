//! Attention in tiles of scores, forward and backward.
//!
//! A task of the forward pass is a block of queries of one head: block of keys by block of keys it keeps the largest
//! score, the sum of exponentials and the weighted values so far (Dao and others, FlashAttention, 2022; Milakov and
//! Gimelshein, 2018). A task of the backward pass is a head of keys with all its queries: scores are computed again
//! from the saved logarithms of sums. Blocks depend on sizes alone, so results don't depend on threads.

use super::real::*;
use crate::gemm::{Bias, Gemm, Matrix, MatrixMut, gemm};
use crate::pool::parallel_for;
use flambeau_base::Result;
use flambeau_engine::backend::layers::{Attention, AttentionBackward, Heads};
use std::ops::Range;

/// Queries of a block.
const QUERIES: usize = 64;

/// Keys of a block.
const KEYS: usize = 256;

/// See [`Attention`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn forward(call: &Attention) -> Result<()> {
    with_real!("scaled_dot_product_attention", call.dtype, R => {
        let blocks = call.queries.div_ceil(QUERIES);
        let work = QUERIES.min(call.queries.max(1)) * call.keys.max(1) * (call.width + call.value_width + 8);
        let shared = Shared(*call);
        parallel_for(call.batch * call.heads * blocks, (128 * 1024 / work.max(1)).max(1), &|range| {
            let call = &{ &shared }.0;
            let mut scratch = Scratch::<R>::forward(call);
            for task in range {
                let (head, block) = (task / blocks, task % blocks);
                let first = block * QUERIES;
                let rows = first..(first + QUERIES).min(call.queries);
                // SAFETY: each task writes its own rows of the result; the rest is the caller's.
                unsafe { scratch.block(call, head / call.heads, head % call.heads, rows) }
            }
        });
        Ok(())
    })
}

/// A part of a head as a matrix of what it is computed in: where it lies, or widened into `space`.
///
/// # Safety
/// The rows lie inside the operand, `space` holds rows by width numbers.
unsafe fn part<R: Real>(
    of: &Heads,
    batch: usize,
    head: usize,
    rows: Range<usize>,
    width: usize,
    space: &mut Vec<R::Sum>,
) -> Matrix<R::Sum> {
    let [b, h, r, c] = of.strides;
    let ptr = of.ptr.cast::<R>().wrapping_offset(batch as isize * b + head as isize * h + rows.start as isize * r);
    if R::WIDE {
        return Matrix { ptr: ptr.cast::<R::Sum>(), row: r, column: c };
    }
    space.resize(rows.len() * width, R::Sum::ZERO);
    // SAFETY: the caller's.
    unsafe { run(&Widen::<R> { from: ptr, row: r, column: c, rows: rows.len(), width, to: space.as_mut_ptr() }) };
    Matrix { ptr: space.as_ptr(), row: width as isize, column: 1 }
}

struct Widen<R: Real> {
    from: *const R,
    row: isize,
    column: isize,
    rows: usize,
    width: usize,
    to: *mut R::Sum,
}

impl<R: Real> Kernel for Widen<R> {
    #[inline(always)]
    unsafe fn run(&self) {
        for row in 0..self.rows {
            let from = self.from.wrapping_offset(row as isize * self.row);
            let to = self.to.wrapping_add(row * self.width);
            // SAFETY: inside the operands.
            unsafe {
                if self.column == 1 {
                    for i in 0..self.width {
                        *to.add(i) = (*from.add(i)).widen();
                    }
                } else {
                    for i in 0..self.width {
                        *to.add(i) = (*from.offset(i as isize * self.column)).widen();
                    }
                }
            }
        }
    }
}

/// The transposed matrix.
fn flip<T>(m: Matrix<T>) -> Matrix<T> {
    Matrix { ptr: m.ptr, row: m.column, column: m.row }
}

/// `c = alpha * a @ b`, or added to `c`; `c` has rows of `stride`.
unsafe fn product<A: Sum>(size: [usize; 3], a: Matrix<A>, b: Matrix<A>, c: MatrixMut<A>, alpha: A, accumulate: bool) {
    let [m, n, k] = size;
    // SAFETY: the caller's.
    unsafe { gemm(&Gemm { m, n, k, a, b, c, alpha, accumulate, bias: Bias::None }) }
}

fn dense<A>(ptr: *mut A, width: usize) -> MatrixMut<A> {
    MatrixMut { ptr, row: width as isize, column: 1 }
}

/// Memory of a task of the forward pass.
struct Scratch<R: Real> {
    scores: Vec<R::Sum>,
    sums: Vec<R::Sum>,
    values: Vec<R::Sum>,
    spaces: [Vec<R::Sum>; 3],
}

impl<R: Real> Scratch<R> {
    fn forward(call: &Attention) -> Scratch<R> {
        let keys = KEYS.min(call.keys);
        Scratch {
            scores: vec![R::Sum::ZERO; QUERIES * keys],
            sums: vec![R::Sum::ZERO; 2 * QUERIES],
            values: vec![R::Sum::ZERO; QUERIES * call.value_width],
            spaces: Default::default(),
        }
    }

    /// Computes the rows of a block of queries.
    ///
    /// # Safety
    /// The kernel contract.
    unsafe fn block(&mut self, call: &Attention, batch: usize, head: usize, rows: Range<usize>) {
        let (n, wide) = (rows.len(), call.value_width);
        let key_head = head / call.group;
        let (most, sum) = self.sums.split_at_mut(QUERIES);
        most.fill(-R::Sum::INFINITY);
        sum.fill(R::Sum::ZERO);
        self.values.fill(R::Sum::ZERO);
        let [q_space, k_space, v_space] = &mut self.spaces;
        // SAFETY: the caller's; scratch memory is as large as the blocks.
        unsafe {
            let q = part::<R>(&call.q, batch, head, rows.clone(), call.width, q_space);
            let end = if call.causal { rows.end.min(call.keys) } else { call.keys };
            for first in (0..end).step_by(KEYS) {
                let keys = first..(first + KEYS).min(end);
                let k = part::<R>(&call.k, batch, key_head, keys.clone(), call.width, k_space);
                let scores = dense(self.scores.as_mut_ptr(), keys.len());
                product([n, keys.len(), call.width], q, flip(k), scores, R::Sum::of(call.scale), false);
                let tile = Tile::<R> {
                    call,
                    batch,
                    head,
                    rows: rows.clone(),
                    keys: keys.clone(),
                    scores: scores.ptr,
                    most: most.as_mut_ptr(),
                    sum: sum.as_mut_ptr(),
                    values: self.values.as_mut_ptr(),
                };
                run(&tile);
                let v = part::<R>(&call.v, batch, key_head, keys.clone(), wide, v_space);
                let p = Matrix { ptr: scores.ptr.cast_const(), row: scores.row, column: 1 };
                product([n, wide, keys.len()], p, v, dense(self.values.as_mut_ptr(), wide), R::Sum::ONE, true);
            }
            let at = (batch * call.heads + head) * call.queries + rows.start;
            let finish = Finish::<R> {
                n,
                wide,
                values: self.values.as_ptr(),
                most: most.as_ptr(),
                sum: sum.as_ptr(),
                out: place::<R>(&call.out, batch, head, rows.start),
                strides: [call.out.strides[2], call.out.strides[3]],
                lse: call.lse.cast::<R::Sum>().add(at),
            };
            run(&finish);
        }
    }
}

fn place<R>(of: &Heads, batch: usize, head: usize, row: usize) -> *mut R {
    let [b, h, r, _] = of.strides;
    of.ptr.cast::<R>().wrapping_offset(batch as isize * b + head as isize * h + row as isize * r)
}

/// A tile of scores becomes exponentials less the largest so far; sums and values so far are brought down to it.
struct Tile<'a, R: Real> {
    call: &'a Attention,
    batch: usize,
    head: usize,
    rows: Range<usize>,
    keys: Range<usize>,
    scores: *mut R::Sum,
    most: *mut R::Sum,
    sum: *mut R::Sum,
    values: *mut R::Sum,
}

/// Masks a row of scores: adds the mask, and puts minus infinity where a key is not seen.
///
/// # Safety
/// The kernel contract; `scores` holds as many as `keys`.
#[inline(always)]
unsafe fn masked<R: Real>(call: &Attention, batch: usize, head: usize, row: usize, keys: &Range<usize>, scores: *mut R::Sum) {
    // SAFETY: the caller's.
    unsafe {
        if let Some(mask) = &call.mask {
            let step = mask.strides[3];
            if call.mask_is_bool {
                let seen = place::<u8>(mask, batch, head, row).wrapping_offset(keys.start as isize * step);
                for i in 0..keys.len() {
                    let s = *scores.add(i);
                    *scores.add(i) = if *seen.offset(i as isize * step) != 0 { s } else { -R::Sum::INFINITY };
                }
            } else {
                let added = place::<R>(mask, batch, head, row).wrapping_offset(keys.start as isize * step);
                let mut at = 0;
                while at < keys.len() {
                    let len = LANES.min(keys.len() - at);
                    let mut block = load_sums(scores.add(at), len);
                    let more = load_apart(added.offset(at as isize * step), step, len);
                    for i in 0..LANES {
                        block[i] += more[i];
                    }
                    store_sums(scores.add(at), len, &block);
                    at += LANES;
                }
            }
        }
        if call.causal {
            for i in (row + 1).saturating_sub(keys.start).min(keys.len())..keys.len() {
                *scores.add(i) = -R::Sum::INFINITY;
            }
        }
    }
}

impl<R: Real> Kernel for Tile<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let (n, wide) = (self.keys.len(), self.call.value_width);
        for (r, row) in self.rows.clone().enumerate() {
            let scores = self.scores.wrapping_add(r * n);
            // SAFETY: the row lies inside the tile, and the operands are the caller's.
            unsafe {
                masked::<R>(self.call, self.batch, self.head, row, &self.keys, scores);
                let before = *self.most.add(r);
                let most = larger(before, max_of(n, scores));
                // Where all is masked so far, exponentials of minus infinity are to be zeros, and of NaN NaN.
                let (base, shrink) = if most == -R::Sum::INFINITY { (R::Sum::ZERO, R::Sum::ONE) } else { (most, (before - most).exp()) };
                let sum = exponentials(n, scores, base);
                *self.most.add(r) = most;
                *self.sum.add(r) = (*self.sum.add(r)).fma(shrink, sum);
                if shrink != R::Sum::ONE {
                    let values = self.values.add(r * wide);
                    put_row::<R::Sum>(values, 1, wide, values, shrink);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn max_of<A: Sum + Real<Sum = A>>(n: usize, x: *const A) -> A {
    // SAFETY: the caller's.
    unsafe { super::softmax::row_max::<A>(n, x) }
}

#[inline(always)]
unsafe fn exponentials<A: Sum + Real<Sum = A>>(n: usize, x: *mut A, base: A) -> A {
    // SAFETY: the caller's.
    unsafe { super::softmax::row_exp_sum::<A>(n, x, base, x) }
}

/// Stores a row of numbers times a factor.
///
/// # Safety
/// `n` numbers are readable, and as many elements writable.
#[inline(always)]
unsafe fn put_row<R: Real>(to: *mut R, stride: isize, n: usize, from: *const R::Sum, factor: R::Sum) {
    // SAFETY: the caller's.
    unsafe {
        if stride != 1 {
            for i in 0..n {
                *to.offset(i as isize * stride) = R::narrow(*from.add(i) * factor);
            }
            return;
        }
        let mut at = 0;
        while at < n {
            let len = LANES.min(n - at);
            let mut block = load_sums(from.add(at), len);
            for b in &mut block {
                *b = *b * factor;
            }
            store_some(to.add(at), len, &block);
            at += LANES;
        }
    }
}

/// Loads `len` elements that are `stride` apart.
///
/// # Safety
/// They are readable, `len <= LANES`.
#[inline(always)]
unsafe fn load_apart<R: Real>(from: *const R, stride: isize, len: usize) -> [R::Sum; LANES] {
    // SAFETY: the caller's.
    unsafe {
        if stride == 1 {
            return load_some(from, len, R::Sum::ZERO);
        }
        let mut block = [R::Sum::ZERO; LANES];
        for (i, b) in block.iter_mut().enumerate().take(len) {
            *b = (*from.offset(i as isize * stride)).widen();
        }
        block
    }
}

/// Divides the values by the sums and stores them.
struct Finish<R: Real> {
    n: usize,
    wide: usize,
    values: *const R::Sum,
    most: *const R::Sum,
    sum: *const R::Sum,
    out: *mut R,
    strides: [isize; 2],
    lse: *mut R::Sum,
}

impl<R: Real> Kernel for Finish<R> {
    #[inline(always)]
    unsafe fn run(&self) {
        for r in 0..self.n {
            // SAFETY: inside scratch memory and the operands.
            unsafe {
                let sum = *self.sum.add(r);
                let masked = sum == R::Sum::ZERO;
                *self.lse.add(r) = if masked { R::Sum::INFINITY } else { *self.most.add(r) + sum.ln() };
                let factor = if masked { R::Sum::ZERO } else { R::Sum::ONE / sum };
                let out = self.out.offset(r as isize * self.strides[0]);
                put_row(out, self.strides[1], self.wide, self.values.add(r * self.wide), factor);
            }
        }
    }
}

/// See [`AttentionBackward`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn backward(call: &AttentionBackward) -> Result<()> {
    with_real!("scaled_dot_product_attention_backward", call.forward.dtype, R => {
        let shared = Shared(*call);
        let key_heads = call.forward.heads / call.forward.group;
        parallel_for(call.forward.batch * key_heads, 1, &|range| {
            let call = &{ &shared }.0;
            let mut work = Backward::<R>::new(call);
            for task in range {
                // SAFETY: each task writes the gradients of its own heads; the rest is the caller's.
                unsafe { work.head(task / key_heads, task % key_heads) }
            }
        });
        Ok(())
    })
}

/// Memory of a task of the backward pass.
struct Backward<'a, R: Real> {
    call: &'a AttentionBackward,
    scores: Vec<R::Sum>,
    score_grads: Vec<R::Sum>,
    /// For each query the product of the result and its gradient.
    delta: Vec<R::Sum>,
    q_grad: Vec<R::Sum>,
    k_grad: Vec<R::Sum>,
    v_grad: Vec<R::Sum>,
    spaces: [Vec<R::Sum>; 4],
}

impl<'a, R: Real> Backward<'a, R> {
    fn new(call: &'a AttentionBackward) -> Self {
        let f = &call.forward;
        let keys = KEYS.min(f.keys);
        let zeros = |n: usize| vec![R::Sum::ZERO; n];
        Backward {
            call,
            scores: zeros(QUERIES * keys),
            score_grads: zeros(QUERIES * keys),
            delta: zeros(f.group * f.queries),
            q_grad: zeros(f.group * f.queries * f.width),
            k_grad: zeros(keys * f.width),
            v_grad: zeros(keys * f.value_width),
            spaces: Default::default(),
        }
    }

    /// The gradients of one head of keys and values and of the heads of queries that share it.
    ///
    /// # Safety
    /// The kernel contract.
    unsafe fn head(&mut self, batch: usize, key_head: usize) {
        let f = self.call.forward;
        self.q_grad.fill(R::Sum::ZERO);
        // SAFETY: the caller's.
        unsafe {
            for g in 0..f.group {
                let head = key_head * f.group + g;
                run(&Delta::<R> {
                    n: f.queries,
                    wide: f.value_width,
                    out: place(&f.out, batch, head, 0),
                    out_strides: [f.out.strides[2], f.out.strides[3]],
                    grad: place(&self.call.grad, batch, head, 0),
                    grad_strides: [self.call.grad.strides[2], self.call.grad.strides[3]],
                    delta: self.delta.as_mut_ptr().add(g * f.queries),
                });
            }
            for first in (0..f.keys).step_by(KEYS) {
                let keys = first..(first + KEYS).min(f.keys);
                self.k_grad.fill(R::Sum::ZERO);
                self.v_grad.fill(R::Sum::ZERO);
                for g in 0..f.group {
                    let start = if f.causal { first / QUERIES * QUERIES } else { 0 };
                    for row in (start..f.queries).step_by(QUERIES) {
                        self.tile(batch, key_head, g, row..(row + QUERIES).min(f.queries), keys.clone());
                    }
                }
                let [_, k, v] = &self.call.grads;
                put::<R>(k, batch, key_head, first, keys.len(), f.width, &self.k_grad);
                put::<R>(v, batch, key_head, first, keys.len(), f.value_width, &self.v_grad);
            }
            for g in 0..f.group {
                let grad = &self.q_grad[g * f.queries * f.width..];
                put::<R>(&self.call.grads[0], batch, key_head * f.group + g, 0, f.queries, f.width, grad);
            }
        }
    }

    /// Adds what a tile of scores gives to the three gradients.
    ///
    /// # Safety
    /// The kernel contract.
    unsafe fn tile(&mut self, batch: usize, key_head: usize, g: usize, rows: Range<usize>, keys: Range<usize>) {
        let f = &self.call.forward;
        let head = key_head * f.group + g;
        let (n, m, width, wide) = (rows.len(), keys.len(), f.width, f.value_width);
        let [q_space, k_space, v_space, g_space] = &mut self.spaces;
        let one = R::Sum::ONE;
        // SAFETY: the caller's; scratch memory is as large as the blocks.
        unsafe {
            let q = part::<R>(&f.q, batch, head, rows.clone(), width, q_space);
            let k = part::<R>(&f.k, batch, key_head, keys.clone(), width, k_space);
            let v = part::<R>(&f.v, batch, key_head, keys.clone(), wide, v_space);
            let grad = part::<R>(&self.call.grad, batch, head, rows.clone(), wide, g_space);
            let (scores, score_grads) = (dense(self.scores.as_mut_ptr(), m), dense(self.score_grads.as_mut_ptr(), m));
            product([n, m, width], q, flip(k), scores, R::Sum::of(f.scale), false);
            product([n, m, wide], grad, flip(v), score_grads, one, false);
            let lse = f.lse.cast::<R::Sum>().add((batch * f.heads + head) * f.queries + rows.start);
            run(&GradTile::<R> {
                call: f,
                batch,
                head,
                rows: rows.clone(),
                keys: keys.clone(),
                scores: scores.ptr,
                score_grads: score_grads.ptr,
                lse,
                delta: self.delta.as_ptr().add(g * f.queries + rows.start),
            });
            let read = |c: MatrixMut<R::Sum>| Matrix { ptr: c.ptr.cast_const(), row: c.row, column: c.column };
            product([m, wide, n], flip(read(scores)), grad, dense(self.v_grad.as_mut_ptr(), wide), one, true);
            product([m, width, n], flip(read(score_grads)), q, dense(self.k_grad.as_mut_ptr(), width), one, true);
            let q_grad = self.q_grad.as_mut_ptr().add((g * f.queries + rows.start) * width);
            product([n, width, m], read(score_grads), k, dense(q_grad, width), one, true);
        }
    }
}

/// The product of the result and its gradient, row by row.
struct Delta<R: Real> {
    n: usize,
    wide: usize,
    out: *const R,
    out_strides: [isize; 2],
    grad: *const R,
    grad_strides: [isize; 2],
    delta: *mut R::Sum,
}

impl<R: Real> Kernel for Delta<R> {
    #[inline(always)]
    unsafe fn run(&self) {
        for r in 0..self.n {
            // SAFETY: the row lies inside the operands.
            unsafe {
                let out = self.out.offset(r as isize * self.out_strides[0]);
                let grad = self.grad.offset(r as isize * self.grad_strides[0]);
                let mut sum = Chains::new();
                let mut at = 0;
                while at < self.wide {
                    let (len, from) = (LANES.min(self.wide - at), at as isize);
                    let [so, sg] = [self.out_strides[1], self.grad_strides[1]];
                    let x = load_apart(out.offset(from * so), so, len);
                    sum.add_product(&x, &load_apart(grad.offset(from * sg), sg, len));
                    at += LANES;
                }
                *self.delta.add(r) = sum.total();
            }
        }
    }
}

/// Scores become probabilities, and gradients of probabilities those of products of queries and keys.
struct GradTile<'a, R: Real> {
    call: &'a Attention,
    batch: usize,
    head: usize,
    rows: Range<usize>,
    keys: Range<usize>,
    scores: *mut R::Sum,
    score_grads: *mut R::Sum,
    lse: *const R::Sum,
    delta: *const R::Sum,
}

impl<R: Real> Kernel for GradTile<'_, R> {
    #[inline(always)]
    unsafe fn run(&self) {
        let n = self.keys.len();
        let scale = R::Sum::of(self.call.scale);
        for (r, row) in self.rows.clone().enumerate() {
            let scores = self.scores.wrapping_add(r * n);
            let grads = self.score_grads.wrapping_add(r * n);
            // SAFETY: the row lies inside the tiles.
            unsafe {
                masked::<R>(self.call, self.batch, self.head, row, &self.keys, scores);
                let (lse, delta) = (*self.lse.add(r), *self.delta.add(r));
                let mut at = 0;
                while at < n {
                    let len = LANES.min(n - at);
                    let mut p = load_sums(scores.add(at), len);
                    let mut g = load_sums(grads.add(at), len);
                    for i in 0..LANES {
                        p[i] = (p[i] - lse).exp();
                        g[i] = p[i] * (g[i] - delta) * scale;
                    }
                    store_sums(scores.add(at), len, &p);
                    store_sums(grads.add(at), len, &g);
                    at += LANES;
                }
            }
        }
    }
}

/// Stores rows of a gradient.
///
/// # Safety
/// The rows lie inside the operand; `values` holds rows by width numbers.
unsafe fn put<R: Real>(of: &Heads, batch: usize, head: usize, first: usize, rows: usize, width: usize, values: &[R::Sum]) {
    let to = place::<R>(of, batch, head, first);
    // SAFETY: the caller's.
    unsafe { run(&Put::<R> { to, strides: [of.strides[2], of.strides[3]], rows, width, values: values.as_ptr() }) }
}

struct Put<R: Real> {
    to: *mut R,
    strides: [isize; 2],
    rows: usize,
    width: usize,
    values: *const R::Sum,
}

impl<R: Real> Kernel for Put<R> {
    #[inline(always)]
    unsafe fn run(&self) {
        for r in 0..self.rows {
            let to = self.to.wrapping_offset(r as isize * self.strides[0]);
            // SAFETY: inside the operands.
            unsafe { put_row(to, self.strides[1], self.width, self.values.add(r * self.width), R::Sum::ONE) };
        }
    }
}
