//! Dense linear algebra on stacks of matrices that lie column by column, mostly by the crate `faer`.
//!
//! What follows LAPACK's conventions to the letter, so that programs may rely on them (Householder vectors, pivots
//! of Bunch and Kaufman), is written here.

mod ldl;
mod qr;

use crate::nn::real::Shared;
use crate::pool::parallel_for;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, evd_cplx, evd_real, evd_scratch, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::linalg::triangular_solve as triangular;
use faer::traits::{ComplexField, RealField};
use faer::{MatMut, MatRef, Par, Spec};
use flambeau_base::{DType, DeviceKind, Result};
use flambeau_engine::backend::lacking;
use flambeau_engine::backend::transforms::{Factor, Factorize, TriangularSolve};
use num_complex::Complex;
use rustfft::num_traits::{Float, NumAssign};
use std::ops::Neg;

/// A number of a matrix: real or complex, single or double.
pub trait Number: ComplexField<Real = Self::R> + NumAssign + Neg<Output = Self> + Copy {
    /// The real numbers under it.
    type R: RealField + Float + NumAssign + Copy + Send + Sync;
    /// Whether there is an imaginary part.
    const COMPLEX: bool;
    /// From parts.
    fn of(re: Self::R, im: Self::R) -> Self;
    /// The real part.
    fn re(self) -> Self::R;
    /// The imaginary part.
    fn im(self) -> Self::R;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
    /// Eigenvalues, and right eigenvectors if wanted.
    fn eig(a: MatRef<'_, Self>, values: &mut [Complex<Self::R>], vectors: Option<MatMut<'_, Complex<Self::R>>>, stack: &mut MemStack)
    -> bool;

    /// The square of the magnitude.
    fn square(self) -> Self::R {
        self.re() * self.re() + self.im() * self.im()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type R = $t;
            const COMPLEX: bool = false;
            fn of(re: $t, _: $t) -> $t {
                re
            }
            fn re(self) -> $t {
                self
            }
            fn im(self) -> $t {
                0.0
            }
            fn conjugate(self) -> $t {
                self
            }
            fn eig(a: MatRef<'_, $t>, values: &mut [Complex<$t>], vectors: Option<MatMut<'_, Complex<$t>>>, stack: &mut MemStack) -> bool {
                real_eig(a, values, vectors, stack)
            }
        }
        impl Number for Complex<$t> {
            type R = $t;
            const COMPLEX: bool = true;
            fn of(re: $t, im: $t) -> Self {
                Complex::new(re, im)
            }
            fn re(self) -> $t {
                self.re
            }
            fn im(self) -> $t {
                self.im
            }
            fn conjugate(self) -> Self {
                self.conj()
            }
            fn eig(a: MatRef<'_, Self>, values: &mut [Self], vectors: Option<MatMut<'_, Self>>, stack: &mut MemStack) -> bool {
                evd_cplx(a, DiagMut::from_slice_mut(values), None, vectors, Par::Seq, stack, Spec::default()).is_ok()
            }
        }
    )*};
}
numbers!(f32, f64);

/// Eigenvalues of a real matrix; complex pairs share two columns, the real and the imaginary part.
fn real_eig<T: RealField + Float>(
    a: MatRef<'_, T>,
    values: &mut [Complex<T>],
    vectors: Option<MatMut<'_, Complex<T>>>,
    stack: &mut MemStack,
) -> bool {
    let n = a.nrows();
    let (mut re, mut im) = (vec![T::zero(); n], vec![T::zero(); n]);
    let mut columns = vec![T::zero(); if vectors.is_some() { n * n } else { 0 }];
    let wanted = vectors.is_some().then(|| MatMut::from_column_major_slice_mut(&mut columns, n, n));
    let (re_, im_) = (DiagMut::from_slice_mut(&mut re), DiagMut::from_slice_mut(&mut im));
    if evd_real(a, re_, im_, None, wanted, Par::Seq, stack, Spec::default()).is_err() {
        return false;
    }
    for i in 0..n {
        values[i] = Complex::new(re[i], im[i]);
    }
    if let Some(mut out) = vectors {
        let mut j = 0;
        while j < n {
            let pair = im[j] != T::zero() && j + 1 < n;
            for i in 0..n {
                let x = columns[j * n + i];
                let y = if pair { columns[(j + 1) * n + i] } else { T::zero() };
                out[(i, j)] = Complex::new(x, y);
                if pair {
                    out[(i, j + 1)] = Complex::new(x, -y);
                }
            }
            j += if pair { 2 } else { 1 };
        }
    }
    true
}

macro_rules! by_number {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::C64 => {
                type $t = Complex<f32>;
                $body
            }
            DType::C128 => {
                type $t = Complex<f64>;
                $body
            }
            other => return Err(lacking($op, other, DeviceKind::Cpu)),
        }
    };
}

/// See [`Factorize`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn factorize(call: &Factorize) -> Result<()> {
    by_number!("linalg", call.dtype, T => {
        // SAFETY: the caller's.
        unsafe { each::<T>(call) }
    });
    Ok(())
}

/// Memory for what faer keeps on the way.
fn scratch<T: Number>(call: &Factorize) -> MemBuffer {
    let (m, n) = (call.m, call.n);
    let vectors = if call.columns[0] > 0 { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let how = |columns: usize, size: usize| match columns {
        0 => ComputeSvdVectors::No,
        c if c == size => ComputeSvdVectors::Full,
        _ => ComputeSvdVectors::Thin,
    };
    MemBuffer::new(match call.factor {
        Factor::Cholesky => cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()),
        Factor::Lu => lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Spec::default()),
        Factor::Svd => svd_scratch::<T>(m, n, how(call.columns[0], m), how(call.columns[1], n), Par::Seq, Spec::default()),
        Factor::Eigh => self_adjoint_evd_scratch::<T>(n, vectors, Par::Seq, Spec::default()),
        Factor::Eig => evd_scratch::<T>(n, ComputeEigenvectors::No, vectors, Par::Seq, Spec::default()),
        Factor::Qr | Factor::Householder | Factor::Ldl => faer::dyn_stack::StackReq::EMPTY,
    })
}

/// Part `i` of an operand that has `len` elements for each matrix.
unsafe fn part<'a, T>(ptr: *mut u8, i: usize, len: usize) -> &'a mut [T] {
    if ptr.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: the caller's: so many elements lie there, and nobody else uses them.
    unsafe { std::slice::from_raw_parts_mut(ptr.cast::<T>().add(i * len), len) }
}

unsafe fn each<T: Number>(call: &Factorize) {
    let shared = Shared(*call);
    let grain = (32 * 1024 / (call.m * call.n * call.m.min(call.n)).max(1)).max(1);
    parallel_for(call.batch, grain, &|range| {
        let call = &{ &shared }.0;
        let mut memory = scratch::<T>(call);
        for i in range {
            // SAFETY: the caller's; each matrix has its own parts of the operands.
            let info = unsafe { one::<T>(call, i, MemStack::new(&mut memory)) };
            if !call.info.is_null() {
                // SAFETY: as above.
                unsafe { *call.info.add(i) = info };
            }
        }
    });
}

/// Factorises matrix `i`; gives what went wrong.
unsafe fn one<T: Number>(call: &Factorize, i: usize, stack: &mut MemStack) -> i32 {
    let (m, n, k) = (call.m, call.n, call.m.min(call.n));
    let [left, right] = call.columns;
    // SAFETY: the caller's: operands have the sizes that `Factor` says.
    unsafe {
        let a = part::<T>(call.a, i, m * n);
        match call.factor {
            Factor::Cholesky => cholesky(a, n, stack),
            Factor::Lu => lu(a, m, n, part::<i32>(call.pivots.cast(), i, k), stack),
            Factor::Qr => {
                qr::factor(a, m, n, part::<T>(call.values, i, k));
                0
            }
            Factor::Householder => {
                qr::product(a, m, n, part::<T>(call.values, i, left));
                0
            }
            Factor::Ldl => ldl::factor(a, n, part::<i32>(call.pivots.cast(), i, n), left == 1),
            Factor::Svd => {
                let values = part::<T::R>(call.values, i, k);
                singular::<T>(a, [m, n], [left, right], values, part(call.left, i, m * left), part(call.right, i, n * right), stack)
            }
            Factor::Eigh => hermitian::<T>(a, n, left > 0, part::<T::R>(call.values, i, n), stack),
            Factor::Eig => {
                let values = part::<Complex<T::R>>(call.values, i, n);
                general::<T>(a, n, values, part::<Complex<T::R>>(call.left, i, n * left), stack)
            }
        }
    }
}

fn cholesky<T: Number>(a: &mut [T], n: usize, stack: &mut MemStack) -> i32 {
    let matrix = MatMut::from_column_major_slice_mut(a, n, n);
    let info = match cholesky_in_place(matrix, Default::default(), Par::Seq, stack, Spec::default()) {
        Ok(_) => 0,
        Err(LltError::NonPositivePivot { index }) => index as i32 + 1,
    };
    for j in 1..n {
        a[j * n..j * n + j].fill(T::zero());
    }
    info
}

fn lu<T: Number>(a: &mut [T], m: usize, n: usize, pivots: &mut [i32], stack: &mut MemStack) -> i32 {
    let (mut order, mut inverse) = (vec![0usize; m], vec![0usize; m]);
    let matrix = MatMut::from_column_major_slice_mut(a, m, n);
    let _ = lu_in_place(matrix, &mut order, &mut inverse, Par::Seq, stack, Spec::default());
    // The permutation as LAPACK's exchanges: row `i` with row `pivots[i]`.
    let (mut rows, mut places): (Vec<usize>, Vec<usize>) = ((0..m).collect(), (0..m).collect());
    for (i, p) in pivots.iter_mut().enumerate() {
        let at = places[order[i]];
        *p = at as i32 + 1;
        rows.swap(i, at);
        places[rows[i]] = i;
        places[rows[at]] = at;
    }
    (0..m.min(n)).find(|&i| a[i * m + i] == T::zero()).map_or(0, |i| i as i32 + 1)
}

/// Singular values, descending, and vectors: the left ones as columns, the right ones conjugated as rows.
fn singular<T: Number>(
    a: &mut [T],
    [m, n]: [usize; 2],
    [left, right]: [usize; 2],
    values: &mut [T::R],
    u: &mut [T],
    vh: &mut [T],
    stack: &mut MemStack,
) -> i32 {
    let mut s = vec![T::zero(); m.min(n)];
    let mut v = vec![T::zero(); n * right];
    let of_u = (left > 0).then(|| MatMut::from_column_major_slice_mut(u, m, left));
    let of_v = (right > 0).then(|| MatMut::from_column_major_slice_mut(&mut v, n, right));
    let matrix = MatRef::from_column_major_slice(a, m, n);
    let done = svd(matrix, DiagMut::from_slice_mut(&mut s), of_u, of_v, Par::Seq, stack, Spec::default());
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

fn hermitian<T: Number>(a: &mut [T], n: usize, vectors: bool, values: &mut [T::R], stack: &mut MemStack) -> i32 {
    let copy = a.to_vec();
    let mut s = vec![T::zero(); n];
    let wanted = vectors.then(|| MatMut::from_column_major_slice_mut(a, n, n));
    let matrix = MatRef::from_column_major_slice(&copy, n, n);
    let done = self_adjoint_evd(matrix, DiagMut::from_slice_mut(&mut s), wanted, Par::Seq, stack, Spec::default());
    for (out, x) in values.iter_mut().zip(&s) {
        *out = x.re();
    }
    if done.is_ok() { 0 } else { 1 }
}

/// Eigenvectors have length 1, and their largest element is real.
fn general<T: Number>(a: &mut [T], n: usize, values: &mut [Complex<T::R>], vectors: &mut [Complex<T::R>], stack: &mut MemStack) -> i32 {
    let wanted = !vectors.is_empty();
    let out = wanted.then(|| MatMut::from_column_major_slice_mut(&mut *vectors, n, n));
    if !T::eig(MatRef::from_column_major_slice(a, n, n), values, out, stack) {
        return 1;
    }
    if wanted {
        for column in vectors.chunks_exact_mut(n) {
            let zero = <T::R as rustfft::num_traits::Zero>::zero();
            let size = |z: &Complex<T::R>| z.re * z.re + z.im * z.im;
            let norm = Float::sqrt(column.iter().fold(zero, |sum, z| sum + size(z)));
            let largest = column.iter().fold(Complex::new(zero, zero), |best, z| if size(z) > size(&best) { *z } else { best });
            let length = Float::sqrt(size(&largest));
            let turn = if largest.im == zero || length == zero {
                Complex::new(<T::R as rustfft::num_traits::One>::one(), zero)
            } else {
                Complex::new(largest.re / length, -largest.im / length)
            };
            for z in column {
                let (re, im) = (z.re / norm, z.im / norm);
                *z = Complex::new(re * turn.re - im * turn.im, re * turn.im + im * turn.re);
            }
        }
    }
    0
}

/// See [`TriangularSolve`].
///
/// # Safety
/// The kernel contract.
pub unsafe fn solve_triangular(call: &TriangularSolve) -> Result<()> {
    by_number!("solve_triangular", call.dtype, T => {
        // SAFETY: the caller's.
        unsafe { solve_each::<T>(call) }
    });
    Ok(())
}

unsafe fn solve_each<T: Number>(call: &TriangularSolve) {
    let shared = Shared(*call);
    let grain = (32 * 1024 / (call.n * call.n * call.columns).max(1)).max(1);
    parallel_for(call.batch, grain, &|range| {
        let call = &{ &shared }.0;
        for i in range {
            let a = call.a.cast::<T>().wrapping_offset(i as isize * call.a_strides[0]);
            let b = call.b.cast::<T>().wrapping_offset(i as isize * call.b_strides[0]);
            // SAFETY: the caller's; right sides do not overlap.
            let (a, b) = unsafe {
                (
                    MatRef::from_raw_parts(a, call.n, call.n, call.a_strides[1], call.a_strides[2]),
                    MatMut::from_raw_parts_mut(b, call.n, call.columns, call.b_strides[1], call.b_strides[2]),
                )
            };
            match (call.upper, call.unit) {
                (false, false) => triangular::solve_lower_triangular_in_place(a, b, Par::Seq),
                (false, true) => triangular::solve_unit_lower_triangular_in_place(a, b, Par::Seq),
                (true, false) => triangular::solve_upper_triangular_in_place(a, b, Par::Seq),
                (true, true) => triangular::solve_unit_upper_triangular_in_place(a, b, Par::Seq),
            }
        }
    });
}
