//! Householder QR in blocks, with LAPACK's vectors and factors (Schreiber and Van Loan, 1989).

use crate::Number;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use num_traits::{Float, Zero};

/// Columns that are reduced together.
const BLOCK: usize = 32;

/// `H = 1 - tau v v^H` with `v[0] = 1` that takes `x` to `beta e_0`, `beta` real: leaves `beta` and the rest of `v` in `x`, and gives `tau`.
fn reflector<T: Number>(x: &mut [T]) -> T {
    let zero = <T::R as Zero>::zero();
    let alpha = x[0];
    let rest = x[1..].iter().fold(zero, |sum, z| sum + z.square());
    if rest == zero && alpha.im() == zero {
        return T::zero();
    }
    let norm = Float::sqrt(alpha.square() + rest);
    let beta = if alpha.re() > zero { -norm } else { norm };
    let tau = T::of((beta - alpha.re()) / beta, -alpha.im() / beta);
    let scale = T::one() / (alpha - T::of(beta, zero));
    for z in &mut x[1..] {
        *z *= scale;
    }
    x[0] = T::of(beta, zero);
    tau
}

/// Columns `from..to` of a matrix of `m` rows reduced one after the other.
fn panel<T: Number>(a: &mut [T], m: usize, from: usize, to: usize, tau: &mut [T]) {
    for j in from..to {
        let (head, tail) = a.split_at_mut((j + 1) * m);
        let v = &mut head[j * m + j..];
        tau[j] = reflector(v);
        let factor = tau[j].conjugate();
        if factor == T::zero() {
            continue;
        }
        for column in tail.chunks_exact_mut(m).take(to - j - 1) {
            let c = &mut column[j..];
            let mut dot = c[0];
            for i in 1..v.len() {
                dot += v[i].conjugate() * c[i];
            }
            let w = factor * dot;
            c[0] -= w;
            for i in 1..v.len() {
                let x = v[i] * w;
                c[i] -= x;
            }
        }
    }
}

/// The vectors of columns `from..to`, from row `from` on, with their ones and zeros.
fn vectors<T: Number>(a: &[T], m: usize, from: usize, to: usize) -> Vec<T> {
    let rows = m - from;
    let mut v = vec![T::zero(); rows * (to - from)];
    for j in from..to {
        let at = (j - from) * rows;
        v[at + j - from] = T::one();
        v[at + j - from + 1..at + rows].copy_from_slice(&a[j * m + j + 1..(j + 1) * m]);
    }
    v
}

/// `T` with `H_0 H_1 ... = 1 - V T V^H`.
fn triangle<T: Number>(v: &[T], rows: usize, tau: &[T]) -> Vec<T> {
    let k = tau.len();
    let mut gram = vec![T::zero(); k * k];
    let of_v = MatRef::from_column_major_slice(v, rows, k);
    matmul(MatMut::from_column_major_slice_mut(&mut gram, k, k), Accum::Replace, of_v.adjoint(), of_v, T::one(), Par::Seq);
    let mut t = vec![T::zero(); k * k];
    for i in 0..k {
        for r in 0..i {
            let mut sum = T::zero();
            for c in r..i {
                let x = t[c * k + r] * gram[i * k + c];
                sum += x;
            }
            t[i * k + r] = -(tau[i] * sum);
        }
        t[i * k + i] = tau[i];
    }
    t
}

/// `C -= V T V^H C`, or with `T^H` for the adjoint, for `columns` columns of `c` (of `stride` rows) from row `skip` on.
fn apply<T: Number>(v: &[T], t: &[T], k: usize, adjoint: bool, c: &mut [T], stride: usize, skip: usize, columns: usize) {
    let rows = stride - skip;
    if columns == 0 || rows == 0 {
        return;
    }
    let (of_v, of_t) = (MatRef::from_column_major_slice(v, rows, k), MatRef::from_column_major_slice(t, k, k));
    let mut c = MatMut::from_column_major_slice_mut(&mut c[..stride * columns], stride, columns).subrows_mut(skip, rows);
    let (mut w, mut tw) = (vec![T::zero(); k * columns], vec![T::zero(); k * columns]);
    let mut w_ = MatMut::from_column_major_slice_mut(&mut w, k, columns);
    let mut tw_ = MatMut::from_column_major_slice_mut(&mut tw, k, columns);
    matmul(w_.as_mut(), Accum::Replace, of_v.adjoint(), c.as_ref(), T::one(), Par::Seq);
    if adjoint {
        matmul(tw_.as_mut(), Accum::Replace, of_t.adjoint(), w_.as_ref(), T::one(), Par::Seq);
    } else {
        matmul(tw_.as_mut(), Accum::Replace, of_t, w_.as_ref(), T::one(), Par::Seq);
    }
    matmul(c.as_mut(), Accum::Add, of_v, tw_.as_ref(), -T::one(), Par::Seq);
}

/// `R` above and the Householder vectors below the diagonal, in place of a matrix of `m` rows and `n` columns.
pub fn factor<T: Number>(a: &mut [T], m: usize, n: usize, tau: &mut [T]) {
    let k = m.min(n);
    let mut from = 0;
    while from < k {
        let to = (from + BLOCK).min(k);
        panel(a, m, from, to, tau);
        if to < n {
            let v = vectors(a, m, from, to);
            let t = triangle(&v, m - from, &tau[from..to]);
            apply(&v, &t, to - from, true, &mut a[to * m..], m, from, n - to);
        }
        from = to;
    }
}

/// The first `n` columns of the product of the Householder matrices whose vectors lie in the first columns of `a`, in their place.
pub fn product<T: Number>(a: &mut [T], m: usize, n: usize, tau: &[T]) {
    let k = tau.len().min(n);
    // Beyond the vectors: columns of the identity.
    for j in k..n {
        a[j * m..(j + 1) * m].fill(T::zero());
        a[j * m + j] = T::one();
    }
    let mut to = k;
    while to > 0 {
        let from = (to - 1) / BLOCK * BLOCK;
        let v = vectors(a, m, from, to);
        let t = triangle(&v, m - from, &tau[from..to]);
        for j in from..to {
            a[j * m..(j + 1) * m].fill(T::zero());
            a[j * m + j] = T::one();
        }
        apply(&v, &t, to - from, false, &mut a[from * m..], m, from, n - from);
        to = from;
    }
}
