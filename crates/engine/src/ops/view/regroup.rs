//! The same elements under other sizes.

use super::{Reshape, view};
use crate::Tensor;
use crate::ops::table::{Op, function, place, view_row};
use flambeau_base::{Dims, Error, MemoryFormat, Result, numel, show, wrap_dim};
use smallvec::SmallVec;

impl Tensor {
    /// The same elements under other sizes, one of which may be -1. `RuntimeError` where that needs a copy.
    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        view(Reshape { sizes: infer_size("view", sizes, self.numel())?, of_copy: false }, self)
    }

    /// The same elements under other sizes: a view where the strides allow it, else a copy.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        self.reshape_to(&infer_size("reshape", sizes, self.numel())?)
    }

    pub(crate) fn reshape_to(&self, sizes: &[usize]) -> Result<Tensor> {
        let sizes = Dims::from_slice(sizes);
        if self.layout().view(&sizes).is_some() {
            return view(Reshape { sizes, of_copy: false }, self);
        }
        view(Reshape { sizes, of_copy: true }, &self.copy_in(MemoryFormat::Contiguous)?)
    }

    /// Dimensions `start` to `end` (inclusive) as one; a scalar becomes a vector of one element.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let (a, b) = (wrap_dim("flatten", start, self.ndim())?, wrap_dim("flatten", end, self.ndim())?);
        if a > b {
            return Err(Error::runtime(format!(
                "flatten: flatten() has invalid args: start_dim cannot come after end_dim, got {start} and {end}"
            )));
        }
        if self.ndim() == 0 {
            return self.reshape_to(&[1]);
        }
        if a == b {
            return Ok(self.clone());
        }
        let mut sizes = Dims::from_slice(&self.shape()[..a]);
        sizes.push(self.shape()[a..=b].iter().product());
        sizes.extend_from_slice(&self.shape()[b + 1..]);
        self.reshape_to(&sizes)
    }

    /// One dimension as several, one of which may be -1.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        if sizes.is_empty() {
            return Err(Error::runtime("unflatten: sizes must be non-empty"));
        }
        if self.ndim() == 0 {
            return Err(Error::index(format!("unflatten: Dimension out of range (got {dim}): the tensor has no dimension")));
        }
        let d = wrap_dim("unflatten", dim, self.ndim())?;
        let size = self.shape()[d];
        let new = infer_size("unflatten", sizes, size).map_err(|_| {
            Error::runtime(format!(
                "unflatten: Provided sizes {sizes:?} don't multiply up to the size of dim {d} ({size}) in the input tensor"
            ))
        })?;
        let mut all = Dims::from_slice(&self.shape()[..d]);
        all.extend(new);
        all.extend_from_slice(&self.shape()[d + 1..]);
        view(Reshape { sizes: all, of_copy: false }, self)
    }
}

#[cold]
pub(super) fn not_viewable(input: &Tensor, sizes: &[usize]) -> Error {
    Error::runtime(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
    )
    .note(format!("view: input of shape {} and strides {:?}, asked for {}", show(input.shape()), input.strides(), show(sizes)))
}

/// Sizes with one -1 filled in.
pub fn infer_size(op: &str, sizes: &[i64], n: usize) -> Result<Dims> {
    let wrong = || Error::runtime(format!("{op}: shape '{sizes:?}' is invalid for input of size {n}"));
    let mut out = Dims::new();
    let mut free = None;
    for (i, &s) in sizes.iter().enumerate() {
        match s {
            -1 if free.is_some() => return Err(Error::runtime(format!("{op}: only one dimension can be inferred, got {sizes:?}"))),
            -1 => free = Some(i),
            s if s < 0 => return Err(Error::runtime(format!("{op}: invalid shape dimension {s} in {sizes:?}"))),
            _ => {}
        }
        out.push(if s < 0 { 1 } else { s as usize });
    }
    let known = numel(&out)?;
    match free {
        Some(_) if known == 0 && n == 0 => Err(Error::runtime(format!(
            "{op}: cannot reshape tensor of {n} elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
        ))),
        Some(i) if known != 0 && n.is_multiple_of(known) => {
            out[i] = n / known;
            Ok(out)
        }
        None if known == n => Ok(out),
        _ => Err(wrong()),
    }
}

pub(super) static OPS: &[Op] = &[
    view_row("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", |a| Ok(a.tensor(0)?.view(&a.ints(1)?)?.into()))
        .places(place::METHOD)
        .doc("The same elements in the same order under other sizes, of which one may be -1. A RuntimeError where the strides do not allow it without a copy.")
        .by_layout().samples(&["T(2,6), [3, 4]", "T(2,6), [-1]", "T(4), [2, -1, 2]"]),
    view_row("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", |a| Ok(a.tensor(0)?.view_dtype(a.dtype(1)?)?.into()))
        .places(place::METHOD)
        .doc("The same bytes as elements of another dtype. Where its size differs, the last dimension shrinks or grows.")
        .by_layout().samples(&["I(2,4; 0..9), int32", "I(2,4; 0..9), uint8"]),
    view_row("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| {
        let sizes: SmallVec<[i64; 6]> = a.tensor(1)?.shape().iter().map(|&n| n as i64).collect();
        Ok(a.tensor(0)?.view(&sizes)?.into())
    })
    .places(place::METHOD)
    .doc("`self.view(other.size())`.")
    .by_layout().samples(&["T(2,6), T(3,4)"]),
    view_row("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", |a| Ok(a.tensor(0)?.reshape(&a.ints(1)?)?.into()))
        .doc("The same elements in the same order under other sizes, of which one may be -1: a view where the strides allow it, else a copy.")
        .samples(&["T(2,6), [3, 4]", "T(2,6), [-1]"]),
    view_row("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", |a| {
        let sizes: SmallVec<[i64; 6]> = a.tensor(1)?.shape().iter().map(|&n| n as i64).collect();
        Ok(a.tensor(0)?.reshape(&sizes)?.into())
    })
        .places(place::METHOD)
        .doc("`self.reshape(other.size())`.")
        .samples(&["T(2,6), T(3,4)"]),
    view_row("flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", |a| Ok(a.tensor(0)?.flatten(a.int(1)?, a.int(2)?)?.into()))
        .doc("Dimensions `start_dim` to `end_dim` as one. A scalar becomes a vector.")
        .samples(&["T(2,3,2)", "T(2,3,2), 1", "T(2,3,2), 0, 1", "T()"]),
    view_row("unflatten(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", |a| Ok(a.tensor(0)?.unflatten(a.int(1)?, &a.ints(2)?)?.into()))
        .doc("Dimension `dim` as several dimensions of `sizes`, of which one may be -1.")
        .samples(&["T(2,6), 1, [2, 3]", "T(2,6), -1, [-1, 2]"]),
    view_row("ravel(Tensor(a) self) -> Tensor(a)", |a| Ok(a.tensor(0)?.contiguous()?.reshape(&[-1])?.into()))
        .doc("All elements in row-major order as a vector; a copy only where they do not lie so.")
        .samples(&["T(2,3)"]),
    view_row("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", |a| {
        let (t, format) = (a.tensor(0)?, a.memory_format(1)?);
        if format == MemoryFormat::Preserve {
            return Err(Error::runtime("contiguous: preserve memory format is unsupported by the contiguous operator"));
        }
        Ok(if t.layout().is_contiguous_in(format) { t.clone() } else { t.copy_in(format)? }.into())
    })
    .places(place::METHOD)
    .doc("This tensor if it lies in memory in the format, else a copy that does.")
    .samples(&["T(2,3)"]),
    function("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", |a| {
        Ok(a.tensor(0)?.copy_in(a.opt_memory_format(1)?.unwrap_or(MemoryFormat::Preserve))?.into())
    })
    .without_out()
    .doc("The same values in memory of their own, in the order of dimensions of `self` unless a memory format is given.")
    .samples(&["T(2,3)"]),
];
