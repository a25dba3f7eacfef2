//! Rows of a table looked up by number, and what is counted by number.

use super::rows::indices;
use super::{Address, Pick};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::IndexMode;
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Result, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Rows of a table. Inputs: the table, the numbers (`int64`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Embedding {
    /// A row whose gradient stays zero.
    pub padding: Option<usize>,
    /// Whether a row's gradient is divided by how often it was looked up.
    pub by_frequency: bool,
}

impl Embedding {
    fn pick(&self) -> Pick {
        Pick { name: "embedding", address: Address::Dims(smallvec![0]), distinct: false, wraps: false }
    }
}

impl Primitive for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        self.pick().infer(inputs)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        self.pick().compute(inputs, outputs)
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (Some(grad), Some(info)) = (grads[0].take(), cx.input_info(0)) else { return Ok(smallvec![None, None]) };
        let index = cx.input(1)?;
        let rows = info.sizes[0];
        let (flat, width) = (index.reshape(&[-1])?, info.sizes[1]);
        let mut grad = grad.reshape_to(&[flat.numel(), width])?;
        if self.by_frequency {
            let counts = Tensor::zeros(&[rows], grad.dtype(), grad.device())?;
            let ones = Tensor::full(&[flat.numel()], 1, grad.dtype(), grad.device())?;
            let counts = counts.index_add(0, &flat, &ones)?.index_select(0, &flat)?;
            grad = grad.div(&counts.unsqueeze(1)?)?;
        }
        if let Some(padding) = self.padding {
            grad = grad.masked_fill(&flat.eq(padding)?.unsqueeze(1)?, 0)?;
        }
        let zeros = Tensor::zeros(&info.sizes, grad.dtype(), grad.device())?;
        let summed = super::address::place("embedding", &Address::Dims(smallvec![0]), IndexMode::Add, &zeros, &grad, &[flat])?;
        Ok(smallvec![Some(summed), None])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b10)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        if batch.has_batch[0] || self.by_frequency {
            return Ok(None);
        }
        batch.on_inputs(self)
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Rows of `weight` (a matrix) by number, in the shape of `index` with the row's length behind.
///
/// The row `padding`, where there is one, gets no gradient; with `by_frequency` a row's gradient is divided by how often
/// it was looked up. `IndexError` for rows that are not there.
pub fn embedding(weight: &Tensor, index: &Tensor, padding: Option<usize>, by_frequency: bool) -> Result<Tensor> {
    if weight.ndim() != 2 {
        return Err(Error::runtime(format!("embedding: 'weight' must be 2-D, got shape {}", show(weight.shape()))));
    }
    let index = indices("embedding", index, true)?;
    bind1(&Embedding { padding, by_frequency }, &[weight, &index])
}

fn looked_up(a: &Args) -> Result<Out> {
    let padding = usize::try_from(a.int(2)?).ok();
    Ok(embedding(a.tensor(0)?, a.tensor(1)?, padding, a.bool(3)?)?.into())
}

fn one_hot_row(a: &Args) -> Result<Out> {
    let classes = a.int(1)?;
    if classes < -1 {
        return Err(Error::runtime(format!(
            "one_hot: num_classes is a number of classes, or -1 for one more than the largest, got {classes} (Class values must be smaller than num_classes.)"
        )));
    }
    Ok(one_hot(a.tensor(0)?, usize::try_from(classes).ok())?.into())
}

/// Zeros with a one at each number, as a new last dimension of so many classes.
pub fn one_hot(index: &Tensor, classes: Option<usize>) -> Result<Tensor> {
    if classes.is_none() && index.device().is_meta() {
        return Err(Error::not_implemented(
            "one_hot: the number of classes depends on values, which the meta device has not: give num_classes",
        ));
    }
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "one_hot: one_hot is only applicable to index tensor of type LongTensor (int64), got {}",
            index.dtype()
        )));
    }
    let values = if index.device().is_meta() { Vec::new() } else { index.to_vec::<i64>()? };
    if values.iter().any(|&v| v < 0) {
        return Err(Error::runtime("one_hot: Class values must be non-negative."));
    }
    let largest = values.iter().max().copied();
    let classes = match (classes, largest) {
        (Some(0), _) if index.numel() == 0 => {
            return Err(Error::runtime("one_hot: Can not infer total number of classes from empty tensor."));
        }
        (Some(n), Some(max)) if max >= n as i64 => {
            return Err(Error::runtime(format!("one_hot: Class values must be smaller than num_classes. Got {max} with num_classes={n}")));
        }
        (Some(n), _) => n,
        (None, Some(max)) => max as usize + 1,
        (None, None) => return Err(Error::runtime("one_hot: Can not infer total number of classes from empty tensor.")),
    };
    let mut shape = Dims::from_slice(index.shape());
    shape.push(classes);
    let zeros = Tensor::zeros(&shape, DType::I64, index.device())?;
    zeros.scatter(-1, &index.unsqueeze(-1)?, 1)
}

/// How often each number comes, or the sum of the weights that come with it. Numbers are not negative; at least `least` of them are counted.
pub fn bincount(x: &Tensor, weights: Option<&Tensor>, least: usize) -> Result<Tensor> {
    if !x.dtype().is_integral() || x.dtype() == DType::Bool {
        return Err(Error::not_implemented(format!("bincount: \"bincount_cpu\" not implemented for {}", x.dtype())));
    }
    let wrong =
        || Error::runtime(format!("bincount: bincount only supports 1-d non-negative integral inputs, got shape {}", show(x.shape())));
    if x.ndim() != 1 {
        return Err(wrong());
    }
    let index = x.to_dtype(DType::I64)?;
    let values = index.to_vec::<i64>()?;
    if values.iter().any(|&v| v < 0) {
        return Err(wrong());
    }
    let size = values.iter().max().map_or(0, |&m| m as usize + 1).max(least);
    let weights = match weights {
        None => Tensor::full(&[], 1, DType::I64, x.device())?.expand_to(x.shape())?,
        Some(w) if w.shape() != x.shape() => {
            return Err(Error::runtime(format!(
                "bincount: weights should be 1-d and have the same length as input, got shapes {} and {}",
                show(w.shape()),
                show(x.shape())
            )));
        }
        Some(w) if w.dtype() == DType::F32 => w.clone(),
        Some(w) => w.to_dtype(DType::F64)?,
    };
    Tensor::zeros(&[size], weights.dtype(), x.device())?.index_add(0, &index, &weights)
}

fn counted(a: &Args) -> Result<Out> {
    let least = usize::try_from(a.int(2)?).map_err(|_| Error::runtime("bincount: minlength should be >= 0"))?;
    Ok(bincount(a.tensor(0)?, a.opt_tensor(1)?, least)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", looked_up)
        .places(place::TORCH)
        .without_out()
        .doc("Rows of `weight` by number. The row `padding_idx` gets no gradient; with `scale_grad_by_freq` a row's gradient is divided by how often it was looked up. An IndexError for rows that are not there.")
        .samples(&["T(4,3), I(2,5; 0..4)"]),
    function("one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot_row)
        .places(place::NN)
        .without_out()
        .doc("Zeros (int64) with a one at each number, as a new last dimension of `num_classes`, or of one more than the largest number.")
        .samples(&["I(2,3; 0..4)", "I(3; 0..4), 5"]),
    function("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", counted)
        .without_out()
        .doc("How often each number comes in a vector of integers that are not negative, or the sum of the weights that come with it.")
        .samples(&["I(6; 0..4)", "I(6; 0..4), T(6)", "I(3; 0..2), None, 5"]),
];
