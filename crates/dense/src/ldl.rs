//! `A = L D L^H` (or `L D L^T`) with pivots, `D` of blocks of one or two (Bunch and Kaufman, 1977), packed as LAPACK does.

use crate::Number;
use num_traits::{Float, Zero};

/// Which size counts in comparisons: `|re| + |im|`.
fn size<T: Number>(z: T) -> T::R {
    Float::abs(z.re()) + Float::abs(z.im())
}

/// The lower triangle of `a` factorised in place. Pivots count from 1; two equal negative ones stand for a block of two.
/// Gives the first zero on the diagonal of `D`, from 1 on, or 0.
pub fn factor<T: Number>(a: &mut [T], n: usize, pivots: &mut [i32], hermitian: bool) -> i32 {
    let bound = (<T::R as num_traits::One>::one() + Float::sqrt(seventeen::<T>())) / eight::<T>();
    let turned = |z: T| if hermitian { z.conjugate() } else { z };
    let zero = <T::R as Zero>::zero();
    let at = |i: usize, j: usize| j * n + i;
    let mut info = 0;
    let mut k = 0;
    while k < n {
        if hermitian {
            a[at(k, k)] = T::of(a[at(k, k)].re(), zero);
        }
        let (mut step, mut p) = (1, k);
        let own = size(a[at(k, k)]);
        let (row, most) = (k + 1..n).fold((k, zero), |(r, m), i| if size(a[at(i, k)]) > m { (i, size(a[at(i, k)])) } else { (r, m) });
        if Float::max(own, most) == zero {
            if info == 0 {
                info = k as i32 + 1;
            }
            pivots[k] = k as i32 + 1;
            k += 1;
            continue;
        }
        if own < bound * most {
            // The largest elsewhere in the row that would come here.
            let mut other = zero;
            for j in k..row {
                other = Float::max(other, size(a[at(row, j)]));
            }
            for i in row + 1..n {
                other = Float::max(other, size(a[at(i, row)]));
            }
            if own >= bound * most * (most / other) {
                p = k;
            } else if size(a[at(row, row)]) >= bound * other {
                p = row;
            } else {
                (p, step) = (row, 2);
            }
        }
        let last = k + step - 1;
        if p != last {
            exchange(a, n, last, p, hermitian);
            if step == 2 {
                a.swap(at(k + 1, k), at(p, k));
            }
        }
        if step == 1 {
            let d = a[at(k, k)];
            for j in k + 1..n {
                let f = turned(a[at(j, k)]) / d;
                for i in j..n {
                    let x = a[at(i, k)] * f;
                    a[at(i, j)] -= x;
                }
                if hermitian {
                    a[at(j, j)] = T::of(a[at(j, j)].re(), zero);
                }
            }
            for i in k + 1..n {
                a[at(i, k)] /= d;
            }
            pivots[k] = p as i32 + 1;
        } else {
            two(a, n, k, turned);
            pivots[k] = -(p as i32 + 1);
            pivots[k + 1] = pivots[k];
        }
        k += step;
    }
    info
}

fn seventeen<T: Number>() -> T::R {
    let two = <T::R as num_traits::One>::one() + <T::R as num_traits::One>::one();
    two * two * two * two + <T::R as num_traits::One>::one()
}

fn eight<T: Number>() -> T::R {
    let two = <T::R as num_traits::One>::one() + <T::R as num_traits::One>::one();
    two * two * two
}

/// Rows and columns `k` and `p`, behind it, exchanged in the lower triangle.
fn exchange<T: Number>(a: &mut [T], n: usize, k: usize, p: usize, hermitian: bool) {
    let at = |i: usize, j: usize| j * n + i;
    let turned = |z: T| if hermitian { z.conjugate() } else { z };
    for i in p + 1..n {
        a.swap(at(i, k), at(i, p));
    }
    for j in k + 1..p {
        let (x, y) = (a[at(j, k)], a[at(p, j)]);
        a[at(j, k)] = turned(y);
        a[at(p, j)] = turned(x);
    }
    a[at(p, k)] = turned(a[at(p, k)]);
    a.swap(at(k, k), at(p, p));
}

/// Takes a block of two out of what is behind it.
fn two<T: Number>(a: &mut [T], n: usize, k: usize, turned: impl Fn(T) -> T) {
    let at = |i: usize, j: usize| j * n + i;
    let (d11, d21, d22) = (a[at(k, k)], a[at(k + 1, k)], a[at(k + 1, k + 1)]);
    let determinant = d11 * d22 - d21 * turned(d21);
    for j in k + 2..n {
        let (x, y) = (a[at(j, k)], a[at(j, k + 1)]);
        // Row j of the columns times the block's inverse.
        let w1 = (x * d22 - y * d21) / determinant;
        let w2 = (y * d11 - x * turned(d21)) / determinant;
        let (c1, c2) = (turned(w1), turned(w2));
        for i in j..n {
            let change = a[at(i, k)] * c1 + a[at(i, k + 1)] * c2;
            a[at(i, j)] -= change;
        }
        a[at(j, k)] = w1;
        a[at(j, k + 1)] = w2;
    }
}

/// Solves `A X = B` in place of the `columns` columns of `b`, from the factors and pivots that [`factor`] leaves.
pub fn solve<T: Number>(a: &[T], n: usize, pivots: &[i32], hermitian: bool, b: &mut [T]) {
    let turned = |z: T| if hermitian { z.conjugate() } else { z };
    for x in b.chunks_exact_mut(n) {
        let mut k = 0;
        while k < n {
            k += forward(a, n, pivots, turned, x, k);
        }
        while k > 0 {
            k -= backward(a, n, pivots, turned, x, k - 1);
        }
    }
}

/// One step of `L D` from above; gives how many rows it took.
fn forward<T: Number>(a: &[T], n: usize, pivots: &[i32], turned: impl Fn(T) -> T, x: &mut [T], k: usize) -> usize {
    let at = |i: usize, j: usize| j * n + i;
    let p = pivots[k].unsigned_abs() as usize - 1;
    if pivots[k] > 0 {
        x.swap(k, p);
        let top = x[k];
        for i in k + 1..n {
            x[i] -= a[at(i, k)] * top;
        }
        x[k] /= a[at(k, k)];
        return 1;
    }
    x.swap(k + 1, p);
    let (u, v) = (x[k], x[k + 1]);
    for i in k + 2..n {
        x[i] -= a[at(i, k)] * u + a[at(i, k + 1)] * v;
    }
    let (d11, d21, d22) = (a[at(k, k)], a[at(k + 1, k)], a[at(k + 1, k + 1)]);
    let (p, q) = (d11 / turned(d21), d22 / d21);
    let rest = p * q - T::one();
    let (u, v) = (u / turned(d21), v / d21);
    x[k] = (q * u - v) / rest;
    x[k + 1] = (p * v - u) / rest;
    2
}

/// One step of `L^T` or `L^H` from below; gives how many rows it took.
fn backward<T: Number>(a: &[T], n: usize, pivots: &[i32], turned: impl Fn(T) -> T, x: &mut [T], k: usize) -> usize {
    let p = pivots[k].unsigned_abs() as usize - 1;
    let below = |x: &[T], j: usize| (k + 1..n).fold(T::zero(), |sum, i| sum + turned(a[j * n + i]) * x[i]);
    let last = below(x, k);
    x[k] -= last;
    if pivots[k] > 0 {
        x.swap(k, p);
        return 1;
    }
    let first = below(x, k - 1);
    x[k - 1] -= first;
    x.swap(k, p);
    2
}
