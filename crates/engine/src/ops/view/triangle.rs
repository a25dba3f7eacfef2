//! Triangles and diagonals of matrices, and views replaced in a copy.

use super::window::{diagonal_span, embed};
use super::{Step, Window, zero_fill};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::Outputs;
use crate::ops::create::Options;
use crate::ops::table::{Args, Op, Out, function, place, view_row};
use crate::ops::{OutSpec, Primitive, copy_into};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, MemoryFormat, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// A triangle of the matrices in the last two dimensions, zeros elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The part above the diagonal, or that below it; with the diagonal.
    pub upper: bool,
    /// How far above the main diagonal the diagonal is.
    pub diagonal: i64,
}

impl Triangle {
    /// Which columns of row `i` belong to it, of `m`.
    fn columns(&self, i: usize, m: usize) -> (usize, usize) {
        let at = (i as i64).saturating_add(self.diagonal);
        if self.upper { (at.clamp(0, m as i64) as usize, m) } else { (0, at.saturating_add(1).clamp(0, m as i64) as usize) }
    }
}

impl Primitive for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let t = inputs[0];
        if t.ndim() < 2 {
            return Err(Error::runtime(format!(
                "{}: input tensor must have at least 2 dimensions, got shape {}",
                self.name(),
                show(t.shape())
            )));
        }
        Ok(smallvec![OutSpec { layout: Layout::contiguous(t.shape())?, dtype: t.dtype() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (x, out) = (inputs[0], &outputs[0]);
        let n = x.ndim();
        let (rows, width) = (x.shape()[n - 2], x.shape()[n - 1]);
        zero_fill(out)?;
        let mut row = 0;
        while row < rows {
            let (start, end) = self.columns(row, width);
            // Rows with the same columns (whole ones, mostly) go together.
            let mut next = row + 1;
            while next < rows && self.columns(next, width) == (start, end) {
                next += 1;
            }
            if end > start {
                let part =
                    |t: &Tensor| t.alias_with(t.layout().slice(n - 2, row, next - row, 1).slice(n - 1, start, end - start, 1), t.dtype());
                copy_into(&part(out), &part(x))?;
            }
            row = next;
        }
        Ok(())
    }

    fn vjp(&self, _: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind1(self, &[&grad])?)])
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_inputs(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// The lower triangle of the matrices in the last two dimensions, up to the diagonal `diagonal` above the main one.
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        bind1(&Triangle { upper: false, diagonal }, &[self])
    }

    /// The upper triangle of the matrices in the last two dimensions, from the diagonal `diagonal` above the main one on.
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        bind1(&Triangle { upper: true, diagonal }, &[self])
    }

    /// Matrices with the last dimension as the diagonal `offset` above the main one, in dimensions `dim1` and `dim2` of the result.
    pub fn diag_embed(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let ndim = self.ndim() + 1;
        let (a, b) = (wrap_dim("diag_embed", dim1, ndim)?, wrap_dim("diag_embed", dim2, ndim)?);
        if a == b {
            return Err(Error::runtime(format!("diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")));
        }
        let Some((&length, rest)) = self.shape().split_last() else {
            return Err(Error::runtime("diag_embed: a tensor of at least one dimension is needed"));
        };
        let side = length.saturating_add(offset.unsigned_abs() as usize);
        let mut shape = Dims::from_slice(rest);
        shape.insert(a.min(b), side);
        shape.insert(a.max(b), side);
        embed(Window(smallvec![Step::Diagonal { offset, dim1: a, dim2: b }]), self, &shape)
    }

    /// A vector as a matrix's diagonal, or a matrix's diagonal as a vector.
    pub fn diag(&self, diagonal: i64) -> Result<Tensor> {
        match self.ndim() {
            1 => self.diag_embed(diagonal, 0, 1),
            2 => self.diagonal(diagonal, 0, 1)?.copy_in(MemoryFormat::Contiguous),
            n => Err(Error::runtime(format!("diag: diag(): Supports 1D or 2D tensors. Got {n}D"))),
        }
    }
}

/// The places of a triangle of an n x m matrix, as two rows: rows, columns.
fn triangle_indices(a: &Args, upper: bool) -> Result<Out> {
    let options = Options::of(a, 3)?;
    let dtype = options.dtype.unwrap_or(DType::I64);
    if !matches!(dtype, DType::I64 | DType::I32) {
        return Err(Error::not_implemented(format!("{}: not implemented for {dtype}: use int64 or int32", a.name)));
    }
    let (n, m) = (a.int(0)?, a.int(1)?);
    for (what, value) in [("row", n), ("col", m)] {
        if value < 0 {
            return Err(Error::runtime(format!("{}: {what} must be non-negative, got {value}", a.name)));
        }
    }
    let triangle = Triangle { upper, diagonal: a.int(2)? };
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for i in 0..n as usize {
        let (start, end) = triangle.columns(i, m as usize);
        rows.extend(std::iter::repeat_n(i as i64, end - start));
        columns.extend(start as i64..end as i64);
    }
    let count = rows.len();
    rows.append(&mut columns);
    Ok(Tensor::from_slice(&rows, &[2, count])?.to_dtype(dtype)?.into())
}

/// A copy of a tensor in which a view of it holds other values.
fn replaced(x: &Tensor, part: impl Fn(&Tensor) -> Result<Tensor>, source: &Tensor, op: &str) -> Result<Out> {
    let whole = x.copy()?;
    let window = part(&whole)?;
    if window.shape() != source.shape() {
        return Err(Error::runtime(format!(
            "{op}: expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            show(source.shape()),
            show(window.shape())
        )));
    }
    window.copy_(source)?;
    Ok(whole.into())
}

fn strided(a: &Args) -> Result<Out> {
    let (shape, strides, offset) = super::strided::geometry("as_strided_scatter", &a.ints(2)?, &a.ints(3)?, a.opt_int(4)?)?;
    let whole = a.tensor(0)?.contiguous()?;
    replaced(&whole, |t| t.as_strided(&shape, &strides, offset), a.tensor(1)?, "as_strided_scatter")
}

fn flat_diagonal(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.reshape(&[-1])?.diag(a.int(1)?)?.into())
}

/// A number on the main diagonal, in place.
fn filled_diagonal(a: &Args) -> Result<Out> {
    let (x, wrap) = (a.tensor(0)?, a.bool(2)?);
    let n = x.ndim();
    if n < 2 || (n > 2 && x.shape().iter().any(|s| *s != x.shape()[0])) {
        return Err(Error::runtime(format!(
            "fill_diagonal_: dimensions must larger than 1, and all of equal length above 2, got shape {}",
            show(x.shape())
        )));
    }
    let whole = x.clone();
    let length = *x.shape().iter().min().unwrap_or(&0);
    let step: isize = whole.strides().iter().sum();
    let offset = whole.layout().offset();
    whole.as_strided(&[length], &[step], Some(offset))?.fill_(a.scalar(1)?)?;
    let (rows, columns) = (x.shape()[0], x.shape()[1]);
    if wrap && n == 2 && rows > columns + 1 {
        // The diagonal begins again one row below the end of the last one.
        let mut start = columns + 1;
        while start < rows {
            let (_, _, length) = diagonal_span(rows - start, columns, 0);
            let first = offset + start * whole.strides()[0] as usize;
            whole.as_strided(&[length], &[step], Some(first))?.fill_(a.scalar(1)?)?;
            start += columns + 1;
        }
    }
    Ok(whole.into())
}

pub(super) static OPS: &[Op] = &[
    function("tril(Tensor self, SymInt diagonal=0) -> Tensor", |a| Ok(a.tensor(0)?.tril(a.int(1)?)?.into()))
        .with_inplace()
        .doc("The lower triangle of the matrices in the last two dimensions, up to the diagonal `diagonal` above the main one; zeros elsewhere.")
        .samples(&["T(3,3)", "T(2,3,4), 1", "T(4,3), -1"]),
    function("triu(Tensor self, SymInt diagonal=0) -> Tensor", |a| Ok(a.tensor(0)?.triu(a.int(1)?)?.into()))
        .with_inplace()
        .doc("The upper triangle of the matrices in the last two dimensions, from the diagonal `diagonal` above the main one on; zeros elsewhere.")
        .samples(&["T(3,3)", "T(2,3,4), 1", "T(4,3), -1"]),
    function("diag(Tensor self, int diagonal=0) -> Tensor", |a| Ok(a.tensor(0)?.diag(a.int(1)?)?.into()))
        .doc("A vector as the diagonal of a matrix of zeros, or the diagonal of a matrix as a vector.")
        .samples(&["T(3)", "T(3), 1", "T(3,4), -1"]),
    function("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", |a| {
        Ok(a.tensor(0)?.diag_embed(a.int(1)?, a.int(2)?, a.int(3)?)?.into())
    })
    .without_out()
    .doc("Matrices of zeros with the last dimension as their diagonal, in dimensions `dim1` and `dim2` of the result.")
    .samples(&["T(2,3)", "T(2,3), 1, 0, 2"]),
    function("diagflat(Tensor self, int offset=0) -> Tensor", flat_diagonal).without_out().doc("All elements, in row-major order, as the diagonal of a matrix of zeros.").samples(&["T(2,2), 1"]),
    function("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", |a| triangle_indices(a, false))
        .places(place::TORCH)
        .without_out()
        .doc("The places of the lower triangle of a `row` x `col` matrix: a row of row indices and one of column indices.")
        .samples(&["3, 4", "3, 4, -1"]),
    function("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", |a| triangle_indices(a, true))
        .places(place::TORCH)
        .without_out()
        .doc("The places of the upper triangle of a `row` x `col` matrix: a row of row indices and one of column indices.")
        .samples(&["3, 4", "3, 4, 1"]),
    function("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", |a| {
        replaced(a.tensor(0)?, |t| t.select(a.int(2)?, a.int(3)?), a.tensor(1)?, "select_scatter")
    })
    .without_out()
    .doc("A copy of `self` with `src` in the place of `self.select(dim, index)`.")
    .samples(&["T(3,4), T(4), 0, 1"]),
    function("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", |a| {
        replaced(a.tensor(0)?, |t| t.slice(a.int(2)?, a.opt_int(3)?, a.opt_int(4)?, a.int(5)?), a.tensor(1)?, "slice_scatter")
    })
    .doc("A copy of `self` with `src` in the place of a range of dimension `dim`.")
    .samples(&["T(3,4), T(3,2), 1, 0, 4, 2"]),
    function("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", |a| {
        replaced(a.tensor(0)?, |t| t.diagonal(a.int(2)?, a.int(3)?, a.int(4)?), a.tensor(1)?, "diagonal_scatter")
    })
    .without_out()
    .doc("A copy of `self` with `src` in the place of a diagonal.")
    .samples(&["T(3,4), T(3)"]),
    function("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", strided)
        .without_out()
        .doc("A copy of `self` with `src` in the place of a view by strides.")
        .samples(&["T(3,4), T(2,2), [2, 2], [4, 1]"]),
    view_row("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", filled_diagonal)
        .places(place::METHOD)
        .doc("A number on the main diagonal, in place; with `wrap`, tall matrices begin it again below its end.")
        .samples(&["T(3,4), 1.5", "T(7,2), 1.5, True"]),
];
