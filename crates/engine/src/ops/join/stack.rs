//! One after the other along a dimension that is there, or along a new one.

use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, copy_into};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, MemoryFormat, Promotion, Result, show, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Tensors one after the other along a dimension. Empty vectors are skipped, whatever the others' shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cat {
    /// The dimension.
    pub dim: usize,
    /// How much of it each tensor takes.
    pub lengths: Vec<usize>,
}

/// Tensors of one shape, one after the other along a new dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack(pub usize);

/// The dtype in which the tensors meet.
fn common_dtype(tensors: &[&Tensor]) -> Result<DType> {
    let mut promotion = Promotion::default();
    for t in tensors {
        promotion.tensor(t.dtype(), t.ndim().max(1))?;
    }
    promotion.result()
}

fn skipped(t: &Tensor) -> bool {
    t.shape() == [0]
}

/// Memory formats that all tensors have are kept.
fn format_of(tensors: &[&Tensor]) -> MemoryFormat {
    let all = |f| tensors.iter().all(|t| skipped(t) || (t.layout().is_contiguous_in(f) && !t.is_contiguous()));
    let formats = [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];
    formats.into_iter().find(|&f| all(f)).unwrap_or(MemoryFormat::Contiguous)
}

impl Primitive for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let dtype = common_dtype(inputs)?;
        let Some(first) = inputs.iter().find(|t| !skipped(t)) else {
            return Ok(smallvec![OutSpec { layout: Layout::contiguous(&[0])?, dtype }]);
        };
        let mut sizes = Dims::from_slice(first.shape());
        sizes[self.dim] = 0;
        for (i, t) in inputs.iter().enumerate().filter(|(_, t)| !skipped(t)) {
            if t.ndim() != first.ndim() {
                return Err(Error::runtime(format!(
                    "cat: Tensors must have same number of dimensions: got {} and {} (tensor number {i})",
                    first.ndim(),
                    t.ndim()
                )));
            }
            for (d, (&a, &b)) in first.shape().iter().zip(t.shape()).enumerate() {
                if d != self.dim && a != b {
                    return Err(Error::runtime(format!(
                        "cat: Sizes of tensors must match except in dimension {}. Expected size {a} but got size {b} for tensor number {i} in the list (dimension {d} of shapes {} and {}).",
                        self.dim,
                        show(first.shape()),
                        show(t.shape())
                    )));
                }
            }
            sizes[self.dim] += t.shape()[self.dim];
        }
        Ok(smallvec![OutSpec { layout: Layout::in_format("cat", &sizes, format_of(inputs), None)?, dtype }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let out = &outputs[0];
        let mut start = 0;
        for t in inputs.iter().filter(|t| !skipped(t)) {
            let length = t.shape()[self.dim];
            copy_into(&out.alias_with(out.layout().slice(self.dim, start, length, 1), out.dtype()), t)?;
            start += length;
        }
        Ok(())
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        let mut start = 0;
        let mut out = Grads::new();
        for (i, &length) in self.lengths.iter().enumerate() {
            out.push(match cx.input_info(i) {
                Some(info) if info.sizes[..] == [0] => Some(Tensor::zeros(&[0], grad.dtype(), grad.device())?),
                Some(_) => Some(grad.narrow(self.dim as i64, start, length as i64)?),
                None => None,
            });
            start += length as i64;
        }
        Ok(out)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        // An empty vector is skipped, but not one for each example.
        if batch.examples.iter().any(|t| skipped(t)) {
            return Ok(None);
        }
        batch.on_all(&Cat { dim: self.dim + 1, lengths: self.lengths.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Primitive for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let first = inputs[0].shape();
        if let Some((i, t)) = inputs.iter().enumerate().find(|(_, t)| t.shape() != first) {
            return Err(Error::runtime(format!(
                "stack: stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {i}",
                show(first),
                show(t.shape())
            )));
        }
        let mut sizes = Dims::from_slice(first);
        sizes.insert(self.0, inputs.len());
        Ok(smallvec![OutSpec { layout: Layout::contiguous(&sizes)?, dtype: common_dtype(inputs)? }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let out = &outputs[0];
        for (i, t) in inputs.iter().enumerate() {
            copy_into(&out.alias_with(out.layout().select(self.0, i), out.dtype()), t)?;
        }
        Ok(())
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None; cx.inputs()]) };
        let pieces = grad.unbind(self.0 as i64)?;
        Ok(pieces.into_iter().enumerate().map(|(i, g)| cx.needs(i).then_some(g)).collect())
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_all(&Stack(self.0 + 1))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The tensors one after the other along a dimension that they have. Other sizes must agree; dtypes are promoted.
///
/// `ValueError` for no tensors, `RuntimeError` for scalars and for sizes that do not fit.
pub fn cat(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
    if tensors.is_empty() {
        return Err(Error::value("cat: torch.cat(): expected a non-empty list of Tensors"));
    }
    if let Some(i) = tensors.iter().position(|t| t.ndim() == 0) {
        return Err(Error::runtime(format!("cat: zero-dimensional tensor (at position {i}) cannot be concatenated")));
    }
    let ndim = tensors.iter().find(|t| !skipped(t)).map_or(1, |t| t.ndim());
    let dim = wrap_dim("cat", dim, ndim)?;
    let lengths = tensors.iter().map(|t| if skipped(t) { 0 } else { t.shape().get(dim).copied().unwrap_or(0) }).collect();
    bind1(&Cat { dim, lengths }, tensors)
}

/// The tensors, of one shape, one after the other along a new dimension.
pub fn stack(tensors: &[&Tensor], dim: i64) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Error::runtime("stack: stack expects a non-empty TensorList"));
    };
    bind1(&Stack(wrap_dim("stack", dim, first.ndim() + 1)?), tensors)
}

/// `hstack`, `vstack`, `dstack`: with so many dimensions at least, put together along one of them.
fn stacked(a: &Args, op: &str, ndim: usize, dim: i64) -> Result<Out> {
    let tensors = a.tensors(0)?;
    if tensors.is_empty() {
        return Err(Error::runtime(format!("{op}: {op} expects a non-empty TensorList")));
    }
    let tensors: Vec<Tensor> = tensors.into_iter().map(|t| t.at_least(ndim)).collect::<Result<_>>()?;
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    Ok(cat(&tensors, dim)?.into())
}

fn horizontally(a: &Args) -> Result<Out> {
    let flat = a.tensors(0)?.first().is_none_or(|t| t.ndim() < 2);
    stacked(a, "hstack", 1, if flat { 0 } else { 1 })
}

fn as_columns(a: &Args) -> Result<Out> {
    let columns: Vec<Tensor> =
        a.tensors(0)?.into_iter().map(|t| if t.ndim() < 2 { t.reshape(&[-1, 1]) } else { Ok(t.clone()) }).collect::<Result<_>>()?;
    if columns.is_empty() {
        return Err(Error::runtime("column_stack: column_stack expects a non-empty TensorList"));
    }
    Ok(cat(&columns.iter().collect::<Vec<_>>(), 1)?.into())
}

fn concatenated(a: &Args) -> Result<Out> {
    Ok(cat(&a.tensors(0)?, a.int(1)?)?.into())
}

const fn of_list(schema: &'static str, f: fn(&Args) -> Result<Out>) -> Op {
    function(schema, f).places(place::TORCH)
}

pub(super) static OPS: &[Op] = &[
    of_list("cat(Tensor[] tensors, int dim=0) -> Tensor", concatenated)
        .autocast_widest()
        .doc("The tensors one after the other along dimension `dim`. Their other sizes must agree; dtypes are promoted; empty vectors are skipped.")
        .samples(&["[T(2,3), T(1,3)]", "[T(2,3), T(2,1)], dim=1", "[T(2), T(0)]", "[T(2,3), I(1,3; 0..4)]"]),
    of_list("concat(Tensor[] tensors, int dim=0) -> Tensor", concatenated).doc("Alias of `cat`.").samples(&["[T(2,3), T(1,3)]"]),
    of_list("concatenate(Tensor[] tensors, int dim=0) -> Tensor", concatenated).doc("Alias of `cat`.").samples(&["[T(2,3), T(1,3)]"]),
    of_list("stack(Tensor[] tensors, int dim=0) -> Tensor", |a| Ok(stack(&a.tensors(0)?, a.int(1)?)?.into()))
        .autocast_widest()
        .doc("The tensors, of one shape, one after the other along a new dimension `dim`.")
        .samples(&["[T(2,3), T(2,3)]", "[T(2,3), T(2,3)], dim=-1", "[T(), T()]"]),
    of_list("hstack(Tensor[] tensors) -> Tensor", horizontally).doc("The tensors side by side: along dimension 1, vectors along dimension 0.").samples(&["[T(2), T(3)]", "[T(2,1), T(2,3)]"]),
    of_list("vstack(Tensor[] tensors) -> Tensor", |a| stacked(a, "vstack", 2, 0)).doc("The tensors below each other: along dimension 0, vectors as rows.").samples(&["[T(3), T(3)]", "[T(1,3), T(2,3)]"]),
    of_list("row_stack(Tensor[] tensors) -> Tensor", |a| stacked(a, "row_stack", 2, 0)).doc("Alias of `vstack`.").samples(&["[T(3), T(3)]"]),
    of_list("dstack(Tensor[] tensors) -> Tensor", |a| stacked(a, "dstack", 3, 2)).doc("The tensors behind each other: along dimension 2.").samples(&["[T(3), T(3)]", "[T(2,3), T(2,3)]"]),
    of_list("column_stack(Tensor[] tensors) -> Tensor", as_columns).doc("The tensors side by side, vectors as columns.").samples(&["[T(3), T(3)]", "[T(3,2), T(3)]"]),
];
