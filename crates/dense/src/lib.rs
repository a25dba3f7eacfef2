//! Factorisations of dense matrices that lie column by column in slices: real and complex, single and double.
//!
//! Most are those of the crate `faer`; what follows LAPACK's conventions to the letter, so that programs may rely on them
//! (Householder vectors, pivots of Bunch and Kaufman), is written here. The crate knows nothing of tensors, and all of its
//! code is generated in it, so that its users need not be compiled with `faer`.

mod faced;
mod ldl;
mod qr;

use faer::traits::{ComplexField, RealField};
use num_complex::Complex;
use num_traits::{Float, NumAssign};
use std::ops::Neg;

/// A number as the algorithms see it.
pub(crate) trait Number: ComplexField<Real = Self::R> + NumAssign + Neg<Output = Self> + Copy {
    /// The real numbers under it.
    type R: RealField + Float + NumAssign + Copy;
    fn of(re: Self::R, im: Self::R) -> Self;
    fn re(self) -> Self::R;
    fn im(self) -> Self::R;
    fn conjugate(self) -> Self;

    /// The square of the magnitude.
    fn square(self) -> Self::R {
        self.re() * self.re() + self.im() * self.im()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type R = $t;
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
        }
        impl Number for Complex<$t> {
            type R = $t;
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
        }
    )*};
}
numbers!(f32, f64);

/// A matrix in memory: first element, sizes and strides, in elements.
#[derive(Clone, Copy, Debug)]
pub struct View<P> {
    /// The first element.
    pub ptr: P,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// From row to row.
    pub row_stride: isize,
    /// From column to column.
    pub column_stride: isize,
}

/// A type whose matrices can be factorised. Matrices are slices column by column, without gaps; what is wrong with one is said
/// by a number, 0 for nothing.
pub trait Dense: Copy + Send + Sync + 'static {
    /// The dtype of magnitudes.
    type Real: Copy + Send + Sync + 'static;

    /// `L` with `A = L L^H` in place of `A` of `n` rows. Gives which leading minor is not positive.
    fn cholesky(a: &mut [Self], n: usize) -> i32;

    /// `L` and `U` in place of `A`, with LAPACK's pivots, from 1 on. Gives which pivot is zero.
    fn lu(a: &mut [Self], m: usize, n: usize, pivots: &mut [i32]) -> i32;

    /// `R` above and Householder vectors below the diagonal in place of `A`, and their factors.
    fn qr(a: &mut [Self], m: usize, n: usize, tau: &mut [Self]);

    /// The first `n` columns of the product of Householder matrices, in place of their vectors.
    fn householder(a: &mut [Self], m: usize, n: usize, tau: &[Self]);

    /// `L` and block-diagonal `D` in place of the lower triangle, with LAPACK's pivots. Gives which pivot is zero.
    fn ldl(a: &mut [Self], n: usize, pivots: &mut [i32], hermitian: bool) -> i32;

    /// Solves systems from what [`Dense::ldl`] left, in place of the right sides, the columns of `b`. Pivots are between 1 and
    /// `n`, or the negative of it for both rows of a block.
    fn ldl_solve(a: &[Self], n: usize, pivots: &[i32], hermitian: bool, b: &mut [Self]);

    /// Singular values, descending; left vectors as columns of `u` and right ones, conjugated, as rows of `vh`, of which there
    /// are as many as `columns` says.
    fn svd(a: &[Self], sizes: [usize; 2], columns: [usize; 2], values: &mut [Self::Real], u: &mut [Self], vh: &mut [Self]) -> i32;

    /// Eigenvalues, ascending, of a Hermitian matrix of which the lower triangle is read, and eigenvectors in its place.
    fn eigh(a: &mut [Self], n: usize, vectors: bool, values: &mut [Self::Real]) -> i32;

    /// Eigenvalues and, where there is room for them, right eigenvectors of length 1 whose largest element is real.
    fn eig(a: &[Self], n: usize, values: &mut [Complex<Self::Real>], vectors: &mut [Complex<Self::Real>]) -> i32;

    /// `X` with `A X = B` in place of `B`, for triangular `A`.
    ///
    /// # Safety
    /// The views are valid memory, and `b` overlaps nothing.
    unsafe fn solve_triangular(a: View<*const Self>, b: View<*mut Self>, upper: bool, unit: bool);

    /// `A B` in `out`, or added to it.
    ///
    /// # Safety
    /// The views are valid memory, and `out` overlaps nothing.
    unsafe fn product(a: View<*const Self>, b: View<*const Self>, out: View<*mut Self>, accumulate: bool);
}
