//! Rows in order, or the first ones of them.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{IndexMode, Operand as Memory, Sort, backend};
use crate::ops::Outputs;
use crate::ops::index::Address;
use crate::ops::{OutSpec, Primitive, Reads, copy_into};
use crate::transform::bind;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, MemoryFormat, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// A dimension in order: values and their places. Stable; NaN is the largest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sorted {
    /// Which dimension.
    pub dim: usize,
    /// From the largest on.
    pub descending: bool,
}

/// What is kept of a dimension in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selected {
    /// The order.
    pub order: Sorted,
    /// How many are computed, from the first on.
    pub count: usize,
    /// Only the last of these is given, and the dimension is dropped (`kthvalue`).
    pub last_only: bool,
}

/// The rows of a tensor along a dimension: number and length of rows, steps from row to row and in the row.
///
/// `None` where rows are not the same step apart.
fn as_rows(t: &Tensor, dim: usize) -> Option<(usize, usize, [isize; 2])> {
    if t.ndim() == 0 {
        return Some((1, 1, [0, 0]));
    }
    let l = t.layout();
    let others: SmallVec<[usize; 6]> = (0..l.ndim()).filter(|&d| d != dim).collect();
    let rest = l.permute(&others);
    let rows = l.numel() / l.sizes()[dim].max(1);
    let flat = Layout::strided("sort", rest.sizes(), rest.strides(), 0).ok()?.view(&[rows])?;
    Some((rows, l.sizes()[dim], [flat.strides()[0], l.strides()[dim]]))
}

/// A tensor whose rows are the same step apart: this one, or one with the dimension last in memory.
fn workable(t: &Tensor, dim: usize, copy: bool) -> Result<Tensor> {
    if as_rows(t, dim).is_some() {
        return Ok(t.clone());
    }
    let mut order: SmallVec<[usize; 6]> = (0..t.ndim()).filter(|&d| d != dim).collect();
    order.push(dim);
    let fresh = Tensor::empty_layout(Layout::in_order(t.shape(), &order)?, t.dtype(), t.device())?;
    if copy {
        copy_into(&fresh, t)?;
    }
    Ok(fresh)
}

/// The first `count` of each row in order, with their places.
fn run(order: &Sorted, count: usize, x: &Tensor, values: &Tensor, places: &Tensor) -> Result<()> {
    if values.numel() == 0 {
        return Ok(());
    }
    let (input, v, p) = (workable(x, order.dim, true)?, workable(values, order.dim, false)?, workable(places, order.dim, false)?);
    let rows_of = |t: &Tensor| as_rows(t, order.dim).ok_or_else(|| Error::runtime("sort: rows are not evenly apart"));
    let ((rows, length, of_input), (_, _, of_values), (_, _, of_places)) = (rows_of(&input)?, rows_of(&v)?, rows_of(&p)?);
    let call = Sort {
        rows,
        length,
        descending: order.descending,
        input: Memory { ptr: input.data_ptr()?, dtype: input.dtype(), strides: &of_input },
        values: Memory { ptr: v.data_ptr_mut()?, dtype: v.dtype(), strides: &of_values },
        places: Memory { ptr: p.data_ptr_mut()?, dtype: DType::I64, strides: &of_places },
        count,
    };
    // SAFETY: rows, length and steps are those of the tensors' layouts.
    unsafe { backend(x.device())?.sort(&call)? };
    for (from, to) in [(&v, values), (&p, places)] {
        if !from.is(to) {
            copy_into(to, from)?;
        }
    }
    Ok(())
}

/// Puts gradients of sorted (selected) elements where the elements were.
fn back(dim: usize, cx: &Cx, grad: Tensor, places: &Tensor) -> Result<Grads> {
    let Some(info) = cx.input_info(0) else { return Ok(smallvec![None]) };
    let zeros = Tensor::zeros(&info.sizes, grad.dtype(), grad.device())?;
    let address = Address::Along(dim);
    Ok(smallvec![Some(crate::ops::index::place("scatter", &address, IndexMode::Put, &zeros, &grad, std::slice::from_ref(places))?)])
}

impl Primitive for Sorted {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_order("sort", x)?;
        let layout = Layout::in_format("sort", x.shape(), MemoryFormat::Preserve, Some(x.layout()))?;
        Ok(smallvec![OutSpec { layout: layout.clone(), dtype: x.dtype() }, OutSpec { layout, dtype: DType::I64 }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let length = inputs[0].shape().get(self.dim).copied().unwrap_or(1);
        run(self, length, inputs[0], &outputs[0], &outputs[1])
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        match grads[0].take() {
            Some(grad) => back(self.dim, cx, grad, &cx.output(1)?),
            None => Ok(smallvec![None]),
        }
    }

    fn reads(&self) -> Reads {
        Reads::both(0, 0b10)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&Sorted { dim: self.dim + 1, ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Primitive for Selected {
    fn name(&self) -> &'static str {
        if self.last_only { "kthvalue" } else { "topk" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let x = inputs[0];
        check_order(self.name(), x)?;
        let mut sizes = Dims::from_slice(x.shape());
        match self.last_only {
            _ if x.ndim() == 0 => {}
            true => {
                sizes.remove(self.order.dim);
            }
            false => sizes[self.order.dim] = self.count,
        }
        let layout = Layout::contiguous(&sizes)?;
        Ok(smallvec![OutSpec { layout: layout.clone(), dtype: x.dtype() }, OutSpec { layout, dtype: DType::I64 }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let x = inputs[0];
        if !self.last_only || x.ndim() == 0 {
            return run(&self.order, self.count, x, &outputs[0], &outputs[1]);
        }
        let mut sizes = Dims::from_slice(x.shape());
        sizes[self.order.dim] = self.count;
        let values = Tensor::empty(&sizes, x.dtype(), x.device())?;
        let places = Tensor::empty(&sizes, DType::I64, x.device())?;
        run(&self.order, self.count, x, &values, &places)?;
        for (out, all) in outputs.iter().zip([values, places]) {
            copy_into(out, &all.alias_with(all.layout().select(self.order.dim, self.count - 1), all.dtype()))?;
        }
        Ok(())
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None]) };
        let (places, dim) = (cx.output(1)?, self.order.dim);
        if self.last_only && cx.input_info(0).is_some_and(|i| !i.sizes.is_empty()) {
            return back(dim, cx, grad.unsqueeze(dim as i64)?, &places.unsqueeze(dim as i64)?);
        }
        back(dim, cx, grad, &places)
    }

    fn reads(&self) -> Reads {
        Reads::both(0, 0b10)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&Selected { order: Sorted { dim: self.order.dim + 1, ..self.order.clone() }, ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn check_order(op: &str, x: &Tensor) -> Result<()> {
    if x.dtype().is_complex() {
        return Err(Error::type_error(format!("{op}: {op} does not support complex dtypes on CPU: {} has no order", x.dtype())));
    }
    Ok(())
}

fn pair(mut outputs: crate::ops::Outputs) -> Result<(Tensor, Tensor)> {
    match (outputs.pop(), outputs.pop()) {
        (Some(places), Some(values)) => Ok((values, places)),
        _ => Err(Error::runtime("sort: gave no result")),
    }
}

impl Tensor {
    /// A dimension in order: the values and their places (`int64`). Stable; NaN is the largest.
    pub fn sort(&self, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
        pair(bind(&Sorted { dim: wrap_dim("sort", dim, self.ndim())?, descending }, &[self])?)
    }

    /// The `k` largest (or smallest) of a dimension, in order, and their places; of equal ones those that come first.
    pub fn topk(&self, k: i64, dim: i64, largest: bool) -> Result<(Tensor, Tensor)> {
        let d = wrap_dim("topk", dim, self.ndim())?;
        let size = self.shape().get(d).copied().unwrap_or(1);
        if k < 0 || k as usize > size || (self.ndim() == 0 && k == 0) {
            return Err(Error::runtime(format!(
                "topk: selected index k out of range: k = {k} for dimension {d} of size {size} (shape {})",
                show(self.shape())
            )));
        }
        if self.dtype() == DType::Bool {
            return Err(Error::not_implemented("topk: topk does not support bool dtypes on CPU"));
        }
        let order = Sorted { dim: d, descending: largest };
        pair(bind(&Selected { order, count: k as usize, last_only: false }, &[self])?)
    }

    /// The `k`-th smallest of a dimension (counted from 1) and its place.
    pub fn kthvalue(&self, k: i64, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let d = wrap_dim("kthvalue", dim, self.ndim())?;
        let size = self.shape().get(d).copied().unwrap_or(1);
        if k < 1 || k as usize > size {
            return Err(Error::runtime(format!(
                "kthvalue: kthvalue(): selected number k out of range for dimension {d}: k = {k}, size {size}"
            )));
        }
        let order = Sorted { dim: d, descending: false };
        let (values, places) = pair(bind(&Selected { order, count: k as usize, last_only: true }, &[self])?)?;
        if keepdim && self.ndim() > 0 { Ok((values.unsqueeze(d as i64)?, places.unsqueeze(d as i64)?)) } else { Ok((values, places)) }
    }
}
