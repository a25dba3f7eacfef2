//! The matrix product: packed, blocked, threaded, for any strides.
//!
//! `c = alpha * (a @ b) + bias`, or added to what `c` holds. Operands are memory with strides; transposed and
//! expanded ones cost nothing extra but what reading them costs. Half precision is widened when it is packed,
//! summed in single precision and rounded once, when it is stored.
//!
//! **What a result depends on.** The sum over k is cut into blocks of equal length, which depends on k alone;
//! within a block it is one chain of multiply-adds in order of k, and blocks are added in order. Products with
//! one row or one column are summed in another fixed order (see `vecmat.rs`). So a result is a function of the
//! operands, their sizes, which of their strides are 1, and the instruction set; never of the number of threads
//! or of the split of the work.
//!
//! | file | what |
//! |---|---|
//! | `driver.rs` | cuts a product into tasks |
//! | `block.rs` | computes a task, block by block |
//! | `right.rs` | a right operand that is packed once for all its uses |
//! | `vecmat.rs` | one row or one column |
//! | `kernel.rs`, `vector.rs` | inner loops, and the vectors that they are written in |
//! | `table.rs` | the inner loops compiled for each instruction set |
//! | `indirect.rs` | operands that are packed, and results that are stored, by functions of the caller's |
//! | `direct.rs` | rows and channels weighed by single numbers |
//! | `patch.rs` | packing of windows of tensors |
//! | `integer.rs` | integers, with wrapping arithmetic |

mod block;
mod direct;
mod driver;
mod indirect;
mod integer;
mod kernel;
mod patch;
mod right;
mod scratch;
mod table;
mod vecmat;
mod vector;

use half::{bf16, f16};

pub(crate) use direct::{LINES, Weighed};
pub(crate) use indirect::{Indirect, IndirectProduct};
pub(crate) use patch::{Line, MAX_LINES, Piece};
pub(crate) use table::{Kernels, Table};

/// A matrix to read: where it begins, and how many elements apart its rows and its columns are.
///
/// A stride of 0 repeats the same elements.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<T> {
    /// The element of row 0 and column 0.
    pub ptr: *const T,
    /// Elements from one row to the next.
    pub row: isize,
    /// Elements from one column to the next.
    pub column: isize,
}

/// A matrix to write; see [`Matrix`]. No two of its elements may share memory.
#[derive(Clone, Copy, Debug)]
pub struct MatrixMut<T> {
    /// The element of row 0 and column 0.
    pub ptr: *mut T,
    /// Elements from one row to the next.
    pub row: isize,
    /// Elements from one column to the next.
    pub column: isize,
}

/// A vector that is added to the product.
#[derive(Clone, Copy, Debug)]
pub enum Bias<T> {
    /// Nothing is added.
    None,
    /// `n` adjacent numbers, one for each column: added to every row.
    Columns(*const T),
    /// `m` adjacent numbers, one for each row: added to every column.
    Rows(*const T),
}

/// One matrix product: `c = alpha * (a @ b) + bias`, or `c += ...` with `accumulate`.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<T: GemmElement> {
    /// Rows of `a` and of `c`.
    pub m: usize,
    /// Columns of `b` and of `c`.
    pub n: usize,
    /// Columns of `a`, rows of `b`.
    pub k: usize,
    /// The left operand, m by k.
    pub a: Matrix<T>,
    /// The right operand, k by n.
    pub b: Matrix<T>,
    /// The result, m by n.
    pub c: MatrixMut<T>,
    /// What the product is multiplied by, block of k by block; not `c` and not the bias.
    pub alpha: T::Alpha,
    /// Whether the result is added to what `c` holds; otherwise `c` is not read.
    pub accumulate: bool,
    /// What is added once the sum over k is complete, before half precision is rounded.
    pub bias: Bias<T>,
}

/// An axis along which products are repeated: how often, and how many elements apart each operand's matrices are.
#[derive(Clone, Copy, Debug)]
pub struct BatchAxis {
    /// The number of products.
    pub len: usize,
    /// The step of `a`; 0 takes the same matrix each time.
    pub a: isize,
    /// The step of `b`.
    pub b: isize,
    /// The step of `c`, which must not be 0 where `len` is more than 1.
    pub c: isize,
}

/// Element types of matrix products: `f32`, `f64`, `bf16`, `f16`, and integers, which wrap around.
pub trait GemmElement: Copy + Send + Sync + sealed::Run + 'static {
    /// The type of [`Gemm::alpha`].
    type Alpha: Copy + PartialEq + std::fmt::Debug + Send + Sync;
    /// The `alpha` that changes nothing.
    const ONE: Self::Alpha;
}

pub(crate) mod sealed {
    use super::{BatchAxis, Gemm, GemmElement};

    /// How the products of a type are computed.
    pub trait Run: Sized {
        /// # Safety
        ///
        /// As for [`super::gemm_batched`].
        unsafe fn run(product: &Gemm<Self>, batch: &[BatchAxis])
        where
            Self: GemmElement;
    }
}

macro_rules! impl_element {
    ($($element:ty, $alpha:ty, $one:expr, $module:ident;)*) => {$(
        impl GemmElement for $element {
            type Alpha = $alpha;
            const ONE: $alpha = $one;
        }
        impl sealed::Run for $element {
            unsafe fn run(product: &Gemm<Self>, batch: &[BatchAxis]) {
                // SAFETY: by the caller's promise.
                unsafe { $module::run(product, batch) }
            }
        }
    )*};
}

impl_element! {
    f32, f32, 1.0, driver;
    f64, f64, 1.0, driver;
    bf16, f32, 1.0, driver;
    f16, f32, 1.0, driver;
    u8, u8, 1, integer;
    i8, i8, 1, integer;
    i16, i16, 1, integer;
    i32, i32, 1, integer;
    i64, i64, 1, integer;
}

impl<T: GemmElement> Gemm<T> {
    /// The product of matrices that lie in memory row by row without gaps.
    ///
    /// ```
    /// use flambeau_cpu::gemm::{Gemm, gemm};
    /// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0], [5.0f32, 6.0, 7.0, 8.0]);
    /// let mut c = [0.0f32; 4];
    /// let product = Gemm::contiguous(2, 2, 2, a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    /// // SAFETY: three arrays of 2 by 2 numbers.
    /// unsafe { gemm(&product) };
    /// assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    /// ```
    pub fn contiguous(m: usize, n: usize, k: usize, a: *const T, b: *const T, c: *mut T) -> Gemm<T> {
        let (wide, deep) = (n as isize, k as isize);
        Gemm {
            m,
            n,
            k,
            a: Matrix { ptr: a, row: deep, column: 1 },
            b: Matrix { ptr: b, row: wide, column: 1 },
            c: MatrixMut { ptr: c, row: wide, column: 1 },
            alpha: T::ONE,
            accumulate: false,
            bias: Bias::None,
        }
    }
}

/// Computes one product.
///
/// Where `m` or `n` is 0 nothing happens; where `k` is 0 the product is zero, and the bias is still added.
///
/// # Safety
///
/// Every element of the operands and of the bias that the sizes and strides name is readable, every one of `c`
/// writable (and with `accumulate` initialised), aligned for its type; nothing else uses `c` meanwhile, and no
/// two of its elements share memory, with each other or with an operand.
pub unsafe fn gemm<T: GemmElement>(product: &Gemm<T>) {
    // SAFETY: by the caller's promise.
    unsafe { T::run(product, &[]) }
}

/// Computes a product for each position along the batch axes; the bias is the same for all.
///
/// Many small products are shared among the threads one by one, a few large ones in parts.
///
/// # Safety
///
/// As for [`gemm`], for the matrices of every position.
pub unsafe fn gemm_batched<T: GemmElement>(product: &Gemm<T>, batch: &[BatchAxis]) {
    // SAFETY: by the caller's promise.
    unsafe { T::run(product, batch) }
}

/// How many products the axes make.
fn batch_len(batch: &[BatchAxis]) -> usize {
    batch.iter().map(|axis| axis.len).product()
}

/// The product at a position of the batch, the last axis running fastest.
fn batch_item<T: GemmElement>(product: &Gemm<T>, batch: &[BatchAxis], mut index: usize) -> Gemm<T> {
    let mut item = *product;
    for axis in batch.iter().rev() {
        let at = (index % axis.len) as isize;
        index /= axis.len;
        item.a.ptr = item.a.ptr.wrapping_offset(at * axis.a);
        item.b.ptr = item.b.ptr.wrapping_offset(at * axis.b);
        item.c.ptr = item.c.ptr.wrapping_offset(at * axis.c);
    }
    item
}

/// A value that is shared with the workers although it holds pointers.
struct Shared<T>(T);

// SAFETY: the memory behind the pointers of a product is shared by the contract of `gemm`: operands are only
// read, and the drivers give each part of the result to one thread.
unsafe impl<T> Sync for Shared<T> {}
