//! What kernels of Fourier transforms and of dense linear algebra are asked for.

use flambeau_base::DType;

/// What goes in and out of a Fourier transform.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftKind {
    /// Complex to complex.
    Complex,
    /// Real to the first half, `n / 2 + 1`, of its spectrum.
    FromReal,
    /// From the first half of a spectrum to `n` real numbers.
    ToReal,
}

/// Fourier transforms of all lines along the middle one of three dimensions; all operands are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Fft {
    /// What goes in and out.
    pub kind: FftKind,
    /// The complex dtype.
    pub dtype: DType,
    /// Sizes before and behind the dimension.
    pub outer: usize,
    /// Length of the transform.
    pub n: usize,
    /// Size behind the dimension.
    pub inner: usize,
    /// Whether the exponents are negative. Transforms from real numbers are forward, those to them backward.
    pub forward: bool,
    /// What results are multiplied by.
    pub scale: f64,
    /// The lines.
    pub input: *const u8,
    /// Where results go; may be `input` for complex numbers.
    pub out: *mut u8,
}

/// Which factorisation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Factor {
    /// `L` with `A = L L^H`, in place of `A`; info says which leading minor is not positive.
    Cholesky,
    /// `L` and `U` in place of `A`, with LAPACK's pivots (from 1 on); info says which pivot is zero.
    Lu,
    /// Householder vectors below `R`, in place of `A`, and their factors.
    Qr,
    /// The first columns of the product of Householder matrices, in place of their vectors.
    Householder,
    /// Singular values, and singular vectors of which there are as many columns as asked for.
    Svd,
    /// Eigenvalues of a Hermitian matrix, of which the lower triangle is read, and eigenvectors in place of it.
    Eigh,
    /// Eigenvalues and right eigenvectors of a matrix, complex.
    Eig,
    /// `L` and block-diagonal `D` of a Hermitian or symmetric matrix in place of it, with LAPACK's pivots (Bunch and Kaufman).
    Ldl,
    /// Solutions from what `Ldl` left, in place of the right sides, which stand where right singular vectors do.
    LdlSolve,
}

/// A factorisation of each matrix of a stack. Matrices lie column by column, without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Factorize {
    /// Which one.
    pub factor: Factor,
    /// The matrices' dtype.
    pub dtype: DType,
    /// How many matrices.
    pub batch: usize,
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Columns of the left and of the right singular vectors, 0 for none; of `Householder` how many factors; whether vectors are wanted, for eigenvalues; for `Ldl` and `LdlSolve` whether it is Hermitian.
    pub columns: [usize; 2],
    /// The matrices.
    pub a: *mut u8,
    /// Singular values, eigenvalues or Householder factors.
    pub values: *mut u8,
    /// Left singular vectors, or eigenvectors.
    pub left: *mut u8,
    /// Right singular vectors.
    pub right: *mut u8,
    /// Pivots, `int32`.
    pub pivots: *mut i32,
    /// What went wrong with each matrix, `int32`; 0 for nothing.
    pub info: *mut i32,
}

/// `A X = B` for each triangular matrix of a stack, in place of `B`. Strides are those of matrix, row and column.
#[derive(Clone, Copy, Debug)]
pub struct TriangularSolve {
    /// The dtype.
    pub dtype: DType,
    /// How many matrices.
    pub batch: usize,
    /// Rows and columns of `A`.
    pub n: usize,
    /// Columns of `B`.
    pub columns: usize,
    /// Whether the upper triangle is read, else the lower.
    pub upper: bool,
    /// Whether the diagonal counts as ones.
    pub unit: bool,
    /// The triangular matrices.
    pub a: *const u8,
    /// Their strides, in elements.
    pub a_strides: [isize; 3],
    /// The right sides, and the results.
    pub b: *mut u8,
    /// Their strides, in elements.
    pub b_strides: [isize; 3],
}
