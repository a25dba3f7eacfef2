//! Dense linear algebra on matrices and stacks of them.
//!
//! A factorisation is a primitive with a kernel of the backend ([`Factorization`]); its derivative is written in tensor
//! operations. The rest is made of factorisations, triangular systems and products. Results lie column by column, as
//! LAPACK leaves them.

mod factor;
mod functions;
mod norms;
mod rows;
mod solve;
mod spectral;

pub use factor::{cholesky, geqrf, householder_product, lu_factor, qr};
pub use solve::{lu_solve, solve, solve_triangular};
pub use spectral::{eig, eigh, svd};

use super::{Op, OutSpec, Outputs, Primitive, Reads, copy_into};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::transforms::{Factor, Factorize};
use flambeau_base::{DType, Dims, Error, ErrorKind, Layout, Result, show};
use smallvec::SmallVec;
use std::any::Any;

/// The files of this family, each with its rows.
pub(super) static FAMILIES: &[&[Op]] = &[rows::OPS, functions::OPS, norms::OPS];

/// Two numbers that choose between forms of a factorisation.
pub(crate) type Options = [usize; 2];

/// What a factorisation is.
pub(crate) struct Spec {
    name: &'static str,
    infer: fn(&[&Tensor], Options) -> Result<SmallVec<[OutSpec; 1]>>,
    compute: fn(&[&Tensor], &[Tensor], Options) -> Result<()>,
    vjp: fn(&Cx, &mut Grads, Options) -> Result<Grads>,
    reads: Reads,
    /// Bit `i`: output `i` has a gradient.
    differentiable: u32,
}

/// A factorisation of matrices, or the solution of systems.
#[derive(Clone, Copy)]
pub struct Factorization {
    spec: &'static Spec,
    options: Options,
}

impl std::fmt::Debug for Factorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.spec.name, self.options)
    }
}

impl Primitive for Factorization {
    fn name(&self) -> &'static str {
        self.spec.name
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        (self.spec.infer)(inputs, self.options)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let _guard = crate::autograd::no_grad();
        (self.spec.compute)(inputs, outputs, self.options)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        (self.spec.vjp)(cx, grads, self.options)
    }

    fn reads(&self) -> Reads {
        self.spec.reads
    }

    fn differentiable(&self, i: usize) -> bool {
        self.spec.differentiable >> i & 1 != 0
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Carries out a factorisation.
fn run(spec: &'static Spec, inputs: &[&Tensor], options: Options) -> Result<Outputs> {
    crate::transform::bind(&Factorization { spec, options }, inputs)
}

/// Rows and columns of the matrices of a stack. `RuntimeError` for less than two dimensions.
fn matrices(op: &str, x: &Tensor) -> Result<(usize, usize)> {
    match x.shape() {
        [.., m, n] => Ok((*m, *n)),
        shape => Err(Error::runtime(format!("{op}: The input tensor A must have at least 2 dimensions, got shape {}", show(shape)))),
    }
}

/// The size of square matrices.
fn square(op: &str, x: &Tensor) -> Result<usize> {
    let (m, n) = matrices(op, x)?;
    if m != n {
        return Err(Error::runtime(format!(
            "{op}: A must be batches of square matrices, but they are {m} by {n} matrices (shape {})",
            show(x.shape())
        )));
    }
    Ok(m)
}

/// Refuses dtypes that have no factorisations.
fn check_dtype(op: &str, x: &Tensor) -> Result<()> {
    match x.dtype() {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => Ok(()),
        DType::F16 | DType::BF16 => {
            Err(Error::not_implemented(format!("{op}: Low precision dtypes not supported. Got {}; convert to float32", x.dtype())))
        }
        other => Err(Error::not_implemented(format!("{op}: Expected a floating point or complex tensor as input. Got {other}"))),
    }
}

/// The dimensions before the matrix.
fn batch(x: &Tensor) -> &[usize] {
    &x.shape()[..x.ndim() - 2]
}

/// Sizes of a stack of something.
fn stacked(batch: &[usize], each: &[usize]) -> Dims {
    batch.iter().chain(each).copied().collect()
}

/// Matrices column by column, without gaps.
fn columns(sizes: &[usize]) -> Result<Layout> {
    let n = sizes.len();
    let mut order: SmallVec<[usize; 6]> = (0..n).collect();
    order.swap(n - 1, n - 2);
    Layout::in_order(sizes, &order)
}

/// Fresh memory, column by column, with the values of `x`.
fn in_columns(x: &Tensor) -> Result<Tensor> {
    let fresh = Tensor::empty_layout(columns(x.shape())?, x.dtype(), x.device())?;
    copy_into(&fresh, x)?;
    Ok(fresh)
}

/// `out` where it lies column by column (row by row for what is no matrix), else fresh memory of its shape.
fn target(out: &Tensor, matrix: bool) -> Result<Tensor> {
    let want = if matrix { columns(out.shape())? } else { Layout::contiguous(out.shape())? };
    if out.strides() == want.strides() {
        return Ok(out.clone());
    }
    Tensor::empty_layout(want, out.dtype(), out.device())
}

/// Brings results to where they belong.
fn settle(pairs: &[(&Tensor, &Tensor)]) -> Result<()> {
    for (from, to) in pairs {
        if !from.is(to) {
            copy_into(to, from)?;
        }
    }
    Ok(())
}

/// Where the kernel writes.
#[derive(Default)]
struct Into_<'a> {
    values: Option<&'a Tensor>,
    left: Option<&'a Tensor>,
    right: Option<&'a Tensor>,
    pivots: Option<&'a Tensor>,
    info: Option<&'a Tensor>,
}

/// Calls the kernel on matrices that lie column by column.
fn factorize(factor: Factor, a: &Tensor, columns: [usize; 2], out: Into_) -> Result<()> {
    let (m, n) = matrices("linalg", a)?;
    let batch: usize = batch(a).iter().product();
    if batch == 0 || a.numel() == 0 {
        return Ok(());
    }
    let ptr = |t: Option<&Tensor>| t.map_or(Ok(std::ptr::null_mut()), |t| t.data_ptr_mut());
    let call = Factorize {
        factor,
        dtype: a.dtype(),
        batch,
        m,
        n,
        columns,
        a: a.data_ptr_mut()?,
        values: ptr(out.values)?,
        left: ptr(out.left)?,
        right: ptr(out.right)?,
        pivots: ptr(out.pivots)?.cast(),
        info: ptr(out.info)?.cast(),
    };
    // SAFETY: `a` and the results lie as the factorisation says, in the sizes that `infer` gives.
    unsafe { backend(a.device())?.factorize(&call) }
}

/// A result of a dtype and sizes, row by row.
fn plain(sizes: &[usize], dtype: DType) -> Result<OutSpec> {
    Ok(OutSpec { layout: Layout::contiguous(sizes)?, dtype })
}

/// A result of a dtype and sizes, column by column.
fn by_columns(sizes: &[usize], dtype: DType) -> Result<OutSpec> {
    Ok(OutSpec { layout: columns(sizes)?, dtype })
}

/// Refuses matrices for which a factorisation failed, by the first of `info` that is not zero.
fn check_info(op: &str, info: &Tensor, what: impl Fn(i64) -> String) -> Result<()> {
    if info.device().is_meta() {
        return Ok(());
    }
    for (i, s) in info.to_scalars()?.into_iter().enumerate() {
        let code = s.to_i64();
        if code != 0 {
            let which = if info.ndim() > 0 { format!("(Batch element {i}): ") } else { String::new() };
            return Err(Error::new(ErrorKind::LinAlg, format!("{op}: {which}{}", what(code))));
        }
    }
    Ok(())
}

/// The same values column by column in memory.
fn laid(x: &Tensor) -> Result<Tensor> {
    let rows = x.transpose(-2, -1)?.contiguous()?;
    // Where a dimension is 1, contiguous is what steps over it by any stride.
    let plain = rows.strides() == Layout::contiguous(rows.shape())?.strides();
    if plain { rows } else { rows.reshape_to(rows.shape())? }.transpose(-2, -1)
}

/// A result that does not depend on `x`, but on which gradients of zero flow to it.
fn attached(out: Tensor, x: &Tensor) -> Result<Tensor> {
    if !x.is_followed() {
        return Ok(out);
    }
    let nothing = x.reshape(&[-1])?.narrow(0, 0, 0)?.sum()?;
    out.add(&if out.dtype().is_complex() || !nothing.dtype().is_complex() { nothing } else { nothing.real()? })
}

/// Takes the imaginary parts from the diagonal of matrices that count as Hermitian.
fn make_diagonal_real(x: &Tensor) -> Result<()> {
    if !x.dtype().is_complex() || x.numel() == 0 {
        return Ok(());
    }
    crate::ops::view::zero_fill(&x.view_as_real()?.select(-1, 1)?.diagonal(0, -2, -1)?)
}

/// The identity, `n` by `n`, like `x`.
fn eye(n: usize, x: &Tensor) -> Result<Tensor> {
    Tensor::eye(n, n, x.dtype(), x.device())
}

/// Values along the last dimension as rows or columns of a matrix that is multiplied.
fn as_row(v: &Tensor) -> Result<Tensor> {
    v.unsqueeze(-2)
}

fn as_column(v: &Tensor) -> Result<Tensor> {
    v.unsqueeze(-1)
}

/// The sum of what is there.
fn total(parts: impl IntoIterator<Item = Option<Tensor>>) -> Result<Option<Tensor>> {
    parts.into_iter().flatten().try_fold(None, |sum: Option<Tensor>, t| match sum {
        None => Ok(Some(t)),
        Some(s) => s.add(&t).map(Some),
    })
}
