//! [`Dense`] by the algorithms of `faer` and of this crate.

use crate::{Dense, Number, View, ldl, qr};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::linalg::triangular_solve as triangular;
use faer::traits::{ComplexField, RealField};
use faer::{Accum, MatMut, MatRef, Par, Spec};
use num_complex::Complex;
use num_traits::{Float, One, Zero};

macro_rules! dense {
    ($($t:ty, $real:ty, $eig:ident;)*) => {$(
        impl Dense for $t {
            type Real = $real;

            fn cholesky(a: &mut [$t], n: usize) -> i32 {
                cholesky(a, n)
            }

            fn lu(a: &mut [$t], m: usize, n: usize, pivots: &mut [i32]) -> i32 {
                lu(a, m, n, pivots)
            }

            fn qr(a: &mut [$t], m: usize, n: usize, tau: &mut [$t]) {
                qr::factor(a, m, n, tau);
            }

            fn householder(a: &mut [$t], m: usize, n: usize, tau: &[$t]) {
                qr::product(a, m, n, tau);
            }

            fn ldl(a: &mut [$t], n: usize, pivots: &mut [i32], hermitian: bool) -> i32 {
                ldl::factor(a, n, pivots, hermitian)
            }

            fn ldl_solve(a: &[$t], n: usize, pivots: &[i32], hermitian: bool, b: &mut [$t]) {
                ldl::solve(a, n, pivots, hermitian, b);
            }

            fn svd(a: &[$t], sizes: [usize; 2], columns: [usize; 2], values: &mut [$real], u: &mut [$t], vh: &mut [$t]) -> i32 {
                singular(a, sizes, columns, values, u, vh)
            }

            fn eigh(a: &mut [$t], n: usize, vectors: bool, values: &mut [$real]) -> i32 {
                hermitian(a, n, vectors, values)
            }

            fn eig(a: &[$t], n: usize, values: &mut [Complex<$real>], vectors: &mut [Complex<$real>]) -> i32 {
                if !$eig(a, n, values, vectors) {
                    return 1;
                }
                normalize(vectors, n);
                0
            }

            unsafe fn solve_triangular(a: View<*const $t>, b: View<*mut $t>, upper: bool, unit: bool) {
                // SAFETY: the caller's.
                unsafe { solve(a, b, upper, unit) }
            }

            unsafe fn product(a: View<*const $t>, b: View<*const $t>, out: View<*mut $t>, accumulate: bool) {
                let how = if accumulate { Accum::Add } else { Accum::Replace };
                // SAFETY: the caller's.
                unsafe { matmul(write(out), how, read(a), read(b), <$t as One>::one(), Par::Seq) }
            }
        }
    )*};
}
dense! {
    f32, f32, real_eig;
    f64, f64, real_eig;
    Complex<f32>, f32, complex_eig;
    Complex<f64>, f64, complex_eig;
}

unsafe fn read<'a, T>(v: View<*const T>) -> MatRef<'a, T> {
    // SAFETY: the caller's.
    unsafe { MatRef::from_raw_parts(v.ptr, v.rows, v.columns, v.row_stride, v.column_stride) }
}

unsafe fn write<'a, T>(v: View<*mut T>) -> MatMut<'a, T> {
    // SAFETY: the caller's.
    unsafe { MatMut::from_raw_parts_mut(v.ptr, v.rows, v.columns, v.row_stride, v.column_stride) }
}

unsafe fn solve<T: Number>(a: View<*const T>, b: View<*mut T>, upper: bool, unit: bool) {
    // SAFETY: the caller's.
    let (a, b) = unsafe { (read(a), write(b)) };
    match (upper, unit) {
        (false, false) => triangular::solve_lower_triangular_in_place(a, b, Par::Seq),
        (false, true) => triangular::solve_unit_lower_triangular_in_place(a, b, Par::Seq),
        (true, false) => triangular::solve_upper_triangular_in_place(a, b, Par::Seq),
        (true, true) => triangular::solve_unit_upper_triangular_in_place(a, b, Par::Seq),
    }
}

/// Drops the imaginary parts of the diagonal, which a Hermitian matrix does not have and LAPACK does not read.
fn real_diagonal<T: Number>(a: &mut [T], n: usize) {
    for i in 0..n {
        a[i * n + i] = T::of(a[i * n + i].re(), Zero::zero());
    }
}

fn cholesky<T: Number>(a: &mut [T], n: usize) -> i32 {
    real_diagonal(a, n);
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()));
    let matrix = MatMut::from_column_major_slice_mut(a, n, n);
    let info = match cholesky_in_place(matrix, Default::default(), Par::Seq, MemStack::new(&mut memory), Spec::default()) {
        Ok(_) => 0,
        Err(LltError::NonPositivePivot { index }) => index as i32 + 1,
    };
    for j in 1..n {
        a[j * n..j * n + j].fill(T::zero());
    }
    info
}

/// LU column by column, with nothing to eliminate below a pivot of zero: `faer` divides by it. The rows' exchanges are
/// LAPACK's.
fn lu_of_singular<T: Number>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32]) {
    for (k, pivot) in pivots.iter_mut().enumerate() {
        let size = |i: usize, a: &[T]| Float::max(Float::abs(a[k * m + i].re()), Float::abs(a[k * m + i].im()));
        let best = (k..m).fold(k, |best, i| if size(i, a) > size(best, a) { i } else { best });
        *pivot = best as i32 + 1;
        for j in 0..n {
            a.swap(j * m + k, j * m + best);
        }
        let head = a[k * m + k];
        if head == T::zero() {
            continue;
        }
        for i in k + 1..m {
            a[k * m + i] /= head;
        }
        for j in k + 1..n {
            let above = a[j * m + k];
            for i in k + 1..m {
                let below = a[k * m + i] * above;
                a[j * m + i] -= below;
            }
        }
    }
}

fn lu<T: Number>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32]) -> i32 {
    let given = a.to_vec();
    let mut memory = MemBuffer::new(lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Spec::default()));
    let (mut order, mut inverse) = (vec![0usize; m], vec![0usize; m]);
    let matrix = MatMut::from_column_major_slice_mut(a, m, n);
    let _ = lu_in_place(matrix, &mut order, &mut inverse, Par::Seq, MemStack::new(&mut memory), Spec::default());
    // The permutation as LAPACK's exchanges: row `i` with row `pivots[i]`.
    let (mut rows, mut places): (Vec<usize>, Vec<usize>) = ((0..m).collect(), (0..m).collect());
    for (i, p) in pivots.iter_mut().enumerate() {
        let at = places[order[i]];
        *p = at as i32 + 1;
        rows.swap(i, at);
        places[rows[i]] = i;
        places[rows[at]] = at;
    }
    let is_nan = |x: T| Float::is_nan(x.re()) || Float::is_nan(x.im());
    if (0..m.min(n)).any(|i| is_nan(a[i * m + i])) && !given.iter().any(|x| is_nan(*x)) {
        a.copy_from_slice(&given);
        lu_of_singular(a, m, n, pivots);
    }
    (0..m.min(n)).find(|&i| a[i * m + i] == T::zero()).map_or(0, |i| i as i32 + 1)
}

fn singular<T: Number>(a: &[T], [m, n]: [usize; 2], [left, right]: [usize; 2], values: &mut [T::R], u: &mut [T], vh: &mut [T]) -> i32 {
    let how = |columns: usize, size: usize| match columns {
        0 => ComputeSvdVectors::No,
        c if c == size => ComputeSvdVectors::Full,
        _ => ComputeSvdVectors::Thin,
    };
    let mut memory = MemBuffer::new(svd_scratch::<T>(m, n, how(left, m), how(right, n), Par::Seq, Spec::default()));
    let mut s = vec![T::zero(); m.min(n)];
    let mut v = vec![T::zero(); n * right];
    let of_u = (left > 0).then(|| MatMut::from_column_major_slice_mut(u, m, left));
    let of_v = (right > 0).then(|| MatMut::from_column_major_slice_mut(&mut v, n, right));
    let matrix = MatRef::from_column_major_slice(a, m, n);
    let done = svd(matrix, DiagMut::from_slice_mut(&mut s), of_u, of_v, Par::Seq, MemStack::new(&mut memory), Spec::default());
    for (out, x) in values.iter_mut().zip(&s) {
        *out = x.re();
    }
    for j in 0..n {
        for i in 0..right {
            vh[j * right + i] = v[i * n + j].conjugate();
        }
    }
    if done.is_ok() { 0 } else { 1 }
}

fn hermitian<T: Number>(a: &mut [T], n: usize, vectors: bool, values: &mut [T::R]) -> i32 {
    let wanted = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<T>(n, wanted, Par::Seq, Spec::default()));
    real_diagonal(a, n);
    let copy = a.to_vec();
    let mut s = vec![T::zero(); n];
    let out = vectors.then(|| MatMut::from_column_major_slice_mut(a, n, n));
    let matrix = MatRef::from_column_major_slice(&copy, n, n);
    let done = self_adjoint_evd(matrix, DiagMut::from_slice_mut(&mut s), out, Par::Seq, MemStack::new(&mut memory), Spec::default());
    for (out, x) in values.iter_mut().zip(&s) {
        *out = x.re();
    }
    if done.is_ok() { 0 } else { 1 }
}

fn eig_memory<T: ComplexField>(n: usize, vectors: bool) -> MemBuffer {
    let wanted = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    MemBuffer::new(evd_scratch::<T>(n, ComputeEigenvectors::No, wanted, Par::Seq, Spec::default()))
}

fn complex_eig<T: RealField>(a: &[Complex<T>], n: usize, values: &mut [Complex<T>], vectors: &mut [Complex<T>]) -> bool {
    let mut memory = eig_memory::<Complex<T>>(n, !vectors.is_empty());
    let out = (!vectors.is_empty()).then(|| MatMut::from_column_major_slice_mut(vectors, n, n));
    let matrix = MatRef::from_column_major_slice(a, n, n);
    evd_cplx(matrix, DiagMut::from_slice_mut(values), None, out, Par::Seq, MemStack::new(&mut memory), Spec::default()).is_ok()
}

/// Complex pairs share two columns, the real and the imaginary part.
fn real_eig<T: RealField + Float>(a: &[T], n: usize, values: &mut [Complex<T>], vectors: &mut [Complex<T>]) -> bool {
    let wanted = !vectors.is_empty();
    let mut memory = eig_memory::<T>(n, wanted);
    let zero = <T as Zero>::zero();
    let (mut re, mut im) = (vec![zero; n], vec![zero; n]);
    let mut columns = vec![zero; if wanted { n * n } else { 0 }];
    let out = wanted.then(|| MatMut::from_column_major_slice_mut(&mut columns, n, n));
    let (re_, im_) = (DiagMut::from_slice_mut(&mut re), DiagMut::from_slice_mut(&mut im));
    let matrix = MatRef::from_column_major_slice(a, n, n);
    if evd_real(matrix, re_, im_, None, out, Par::Seq, MemStack::new(&mut memory), Spec::default()).is_err() {
        return false;
    }
    for i in 0..n {
        values[i] = Complex::new(re[i], im[i]);
    }
    let mut j = 0;
    while wanted && j < n {
        let pair = im[j] != zero && j + 1 < n;
        for i in 0..n {
            let x = columns[j * n + i];
            let y = if pair { columns[(j + 1) * n + i] } else { zero };
            vectors[j * n + i] = Complex::new(x, y);
            if pair {
                vectors[(j + 1) * n + i] = Complex::new(x, -y);
            }
        }
        j += if pair { 2 } else { 1 };
    }
    true
}

/// Columns of length 1 whose largest element is real.
fn normalize<T: Float>(vectors: &mut [Complex<T>], n: usize) {
    let size = |z: &Complex<T>| z.re * z.re + z.im * z.im;
    for column in vectors.chunks_exact_mut(n.max(1)) {
        let norm = column.iter().fold(T::zero(), |sum, z| sum + size(z)).sqrt();
        let largest = column.iter().fold(Complex::new(T::zero(), T::zero()), |best, z| if size(z) > size(&best) { *z } else { best });
        let length = size(&largest).sqrt();
        let turn = if largest.im == T::zero() || length == T::zero() {
            Complex::new(T::one(), T::zero())
        } else {
            Complex::new(largest.re / length, -largest.im / length)
        };
        for z in column {
            let (re, im) = (z.re / norm, z.im / norm);
            *z = Complex::new(re * turn.re - im * turn.im, re * turn.im + im * turn.re);
        }
    }
}
