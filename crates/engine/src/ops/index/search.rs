//! Where values belong in sorted rows.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{Operand as Memory, Search, backend};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{Operand, OutSpec, Primitive};
use crate::transform::bind1;
use flambeau_base::{DType, Error, Layout, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// The place of each value in a sorted row. Inputs, contiguous: the rows, the values of the same dtype, perhaps an order of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchSorted {
    /// Behind equal elements instead of before them.
    pub right: bool,
    /// `int32` or `int64`.
    pub dtype: DType,
}

impl Primitive for SearchSorted {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![OutSpec { layout: Layout::contiguous(inputs[1].shape())?, dtype: self.dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let (rows, values) = (inputs[0], inputs[1]);
        let length = rows.shape().last().copied().unwrap_or(0);
        let shared = rows.ndim() == 1;
        let per_row = if shared { values.numel() } else { values.shape().last().copied().unwrap_or(1) };
        let memory = |t: &Tensor| -> Result<Memory<'static>> { Ok(Memory { ptr: t.data_ptr()?, dtype: t.dtype(), strides: &[] }) };
        let call = Search {
            rows: memory(rows)?,
            length,
            shared,
            values: memory(values)?,
            count: values.numel(),
            per_row,
            order: inputs.get(2).map(|t| memory(t)).transpose()?,
            right: self.right,
            out: Memory { ptr: outputs[0].data_ptr_mut()?, dtype: self.dtype, strides: &[] },
        };
        // SAFETY: all of them are contiguous and of the sizes stated.
        unsafe { backend(rows.device())?.search(&call) }
    }

    fn vjp(&self, cx: &Cx, _: &mut Grads) -> Result<Grads> {
        Ok(smallvec![None; cx.inputs()])
    }

    fn differentiable(&self, _: usize) -> bool {
        false
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The place of each value in the sorted rows of `rows` (its last dimension): before equal elements, or behind them where `right`.
///
/// `rows` is a vector, or has the leading dimensions of `values`. `order`, where given, sorts the rows.
pub fn searchsorted(rows: &Tensor, values: &Tensor, right: bool, int32: bool, order: Option<&Tensor>) -> Result<Tensor> {
    let fits = rows.ndim() == 1
        || (rows.ndim() == values.ndim() && rows.ndim() > 0 && rows.shape()[..rows.ndim() - 1] == values.shape()[..rows.ndim() - 1]);
    if !fits {
        return Err(Error::runtime(format!(
            "searchsorted: torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {} and input value tensor {}",
            show(rows.shape()),
            show(values.shape())
        )));
    }
    if rows.dtype().is_complex() || values.dtype().is_complex() {
        return Err(Error::runtime("searchsorted: not implemented for complex dtypes, which have no order"));
    }
    if let Some(order) = order
        && (order.shape() != rows.shape() || order.dtype() != DType::I64)
    {
        return Err(Error::runtime(format!(
            "searchsorted: torch.searchsorted(): boundary and sorter must have the same size and the sorter be int64, but got {} and {} of {}",
            show(rows.shape()),
            show(order.shape()),
            order.dtype()
        )));
    }
    let dtype = if rows.dtype() == values.dtype() { rows.dtype() } else { rows.dtype().promote(values.dtype())? };
    let (rows, values) = (rows.to_dtype(dtype)?.contiguous()?, values.to_dtype(dtype)?.contiguous()?);
    let op = SearchSorted { right, dtype: if int32 { DType::I32 } else { DType::I64 } };
    match order {
        Some(order) => bind1(&op, &[&rows, &values, &order.contiguous()?]),
        None => bind1(&op, &[&rows, &values]),
    }
}

fn as_tensor(o: Operand, like: &Tensor) -> Result<Tensor> {
    match o {
        Operand::Tensor(t) => Ok(t.clone()),
        Operand::Scalar(s) => Tensor::full(
            &[],
            s,
            if s.is_integral() { like.dtype() } else { like.dtype().promote(s.dtype()).unwrap_or(like.dtype()) },
            like.device(),
        ),
    }
}

fn search(a: &Args) -> Result<Out> {
    let rows = a.tensor(0)?;
    let values = as_tensor(a.operand(1)?, rows)?;
    let right = match a.opt_str(4)?.as_deref() {
        None => a.bool(3)?,
        Some("left") if a.bool(3)? => {
            return Err(Error::runtime(
                "searchsorted: torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True",
            ));
        }
        Some("left") => false,
        Some("right") => true,
        Some(other) => {
            return Err(Error::runtime(format!("searchsorted: torch.searchsorted(): side can only be 'left' or 'right' but got {other}")));
        }
    };
    Ok(searchsorted(rows, &values, right, a.bool(2)?, a.opt_tensor(5)?)?.into())
}

fn bucket(a: &Args) -> Result<Out> {
    let boundaries = a.tensor(1)?;
    if boundaries.ndim() != 1 {
        return Err(Error::runtime(format!("bucketize: boundaries tensor must be 1 dimension, but got dim({})", boundaries.ndim())));
    }
    Ok(searchsorted(boundaries, &as_tensor(a.operand(0)?, boundaries)?, a.bool(3)?, a.bool(2)?, None)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor", search)
        .places(place::TORCH)
        .doc("The place of each value of `self` in the sorted rows of `sorted_sequence`: before equal elements, or behind them with `right`.")
        .samples(&["T(1), T(2,3)"]),
    function("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor", search)
        .places(place::TORCH)
        .doc("The place of a number in a sorted vector.")
        .samples(&["T(1), 0.5"]),
    function("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", bucket)
        .places(place::TORCH)
        .doc("Between which of the sorted `boundaries` each value lies; a value equal to one lies below it, or above it with `right`.")
        .samples(&["T(2,3), T(1)"]),
    function("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", bucket)
        .places(place::TORCH)
        .doc("Between which of the sorted `boundaries` a number lies.")
        .samples(&["0.5, T(1)"]),
];
