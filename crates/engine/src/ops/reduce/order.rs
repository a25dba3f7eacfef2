//! Medians.

use super::{check_not_empty, dims_mask};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::backend;
use crate::backend::layers::Kth;
use crate::ops::Outputs;
use crate::ops::nn::packed;
use crate::ops::table::{Args, Op, Out, function};
use crate::ops::{OutSpec, Primitive, Reads, copy_into};
use crate::transform::bind;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The lower median along a dimension and its place.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    dim: usize,
    keepdim: bool,
    skip_nan: bool,
}

impl Primitive for Median {
    fn name(&self) -> &'static str {
        if self.skip_nan { "nanmedian" } else { "median" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        if x.dtype() == DType::Bool || x.dtype().is_complex() {
            return Err(Error::not_implemented(format!("{}: not implemented for {}", self.name(), x.dtype())));
        }
        let mut sizes = Dims::from_slice(x.shape());
        if self.keepdim && !sizes.is_empty() {
            sizes[self.dim] = 1;
        } else if !sizes.is_empty() {
            sizes.remove(self.dim);
        }
        let layout = Layout::contiguous(&sizes)?;
        Ok(smallvec![OutSpec { layout: layout.clone(), dtype: x.dtype() }, OutSpec { layout, dtype: DType::I64 }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let x = inputs[0].alias();
        let x = if x.ndim() == 0 { x.reshape(&[1])? } else { x };
        let rows = packed(&x.transpose(self.dim as i64, -1)?)?;
        let n = rows.shape()[rows.ndim() - 1];
        let kept = Tensor::empty(&rows.shape()[..rows.ndim() - 1], x.dtype(), x.device())?;
        let places = Tensor::empty(kept.shape(), DType::I64, x.device())?;
        let call = Kth {
            dtype: x.dtype(),
            sizes: [kept.numel(), n],
            skip_nan: self.skip_nan,
            input: rows.data_ptr()?,
            out: kept.data_ptr_mut()?,
            indices: places.data_ptr_mut()?.cast(),
        };
        // SAFETY: rows, results and places are contiguous and as large as stated; rows are not empty, see `along`.
        unsafe { backend(x.device())?.kth(&call)? };
        for (out, found) in outputs.iter().zip([kept, places]) {
            let back = found.unsqueeze(-1)?.transpose(self.dim as i64, -1)?;
            let back = if self.keepdim && out.ndim() > 0 { back } else { back.squeeze(Some(&[self.dim as i64]))? };
            copy_into(out, &back.reshape_to(out.shape())?)?;
        }
        Ok(())
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(g), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None]) };
        if info.sizes.is_empty() {
            return Ok(smallvec![Some(g)]);
        }
        let dim = self.dim as i64;
        let spread = |t: &Tensor| if self.keepdim { Ok(t.clone()) } else { t.unsqueeze(dim) };
        let zeros = Tensor::zeros(&info.sizes, g.dtype(), info.device)?;
        Ok(smallvec![Some(zeros.scatter(dim, &spread(&cx.output(1)?)?, &spread(&g)?)?)])
    }

    fn reads(&self) -> Reads {
        Reads::both(0, 0b10)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&Median { dim: self.dim + 1, ..*self })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn along(x: &Tensor, dim: i64, keepdim: bool, skip_nan: bool) -> Result<(Tensor, Tensor)> {
    let op = Median { dim: 0, keepdim, skip_nan };
    let mask = dims_mask(op.name(), Some(&[dim]), x.ndim(), false)?;
    check_not_empty(op.name(), x, mask, true)?;
    let dim = flambeau_base::wrap_dim(op.name(), dim, x.ndim())?;
    let mut found = bind(&Median { dim, ..op }, &[x])?;
    let places = found.remove(1);
    Ok((found.remove(0), places))
}

/// The median of all elements; its gradient is shared among those that equal it.
fn of_all(x: &Tensor, skip_nan: bool) -> Result<Tensor> {
    if x.numel() == 0 {
        return Tensor::full(&[], f64::NAN, x.dtype(), x.device());
    }
    let plain = along(&x.alias().reshape(&[-1])?, 0, false, skip_nan)?.0;
    if !x.is_followed() {
        return Ok(plain);
    }
    // The mean of those that equal it has the same value and the gradient that is wanted.
    let chosen = Tensor::where_(&plain.isnan()?, &x.alias().isnan()?, &x.alias().eq(&plain)?)?;
    let mean = Tensor::where_(&chosen, x, 0)?.sum()?.div(&chosen.sum()?)?;
    plain.add(&mean.sub(&mean.alias())?)
}

impl Tensor {
    /// The lower median along a dimension and its place; NaN if there is one.
    pub fn median_dim(&self, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        along(self, dim, keepdim, false)
    }

    /// The lower median of all elements; NaN if there is one.
    pub fn median(&self) -> Result<Tensor> {
        of_all(self, false)
    }
}

fn pair(a: &Args, skip_nan: bool) -> Result<Out> {
    let (values, places) = along(a.tensor(0)?, a.int(1)?, a.bool(2)?, skip_nan)?;
    Ok(Out::Tuple(smallvec![values, places]))
}

pub(super) static OPS: &[Op] = &[
    function("median(Tensor self) -> Tensor", |a| Ok(of_all(a.tensor(0)?, false)?.into()))
        .doc("The lower median of all elements; NaN if there is one.")
        .samples(&["T(2,3)", "I(5; 0..9)"])
        .without_out(),
    function("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| pair(a, false))
        .doc("The lower median along `dim` and its place; NaN if there is one. The gradient goes to that place.")
        .samples(&["T(2,5), 1", "T(3,4), 0, True"]),
    function("nanmedian(Tensor self) -> Tensor", |a| Ok(of_all(a.tensor(0)?, true)?.into()))
        .doc("The lower median of the elements that are not NaN.")
        .samples(&["T(2,3)"])
        .without_out(),
    function("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| pair(a, true))
        .doc("The lower median along `dim` of the elements that are not NaN, and its place.")
        .samples(&["T(2,5), 1", "T(3,4), 0, True"]),
];
