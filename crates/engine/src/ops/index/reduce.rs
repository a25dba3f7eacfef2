//! Products, means, maxima and minima of the values that meet in one place, and their derivatives.

use super::{Address, Place, address};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::IndexMode;
use flambeau_base::{DType, Result, Scalar};

/// What a reduction begins with where the tensor's own values do not count.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Zero,
    One,
    Lowest,
    Highest,
}

impl Start {
    pub fn of(self, dtype: DType) -> Scalar {
        match (self, dtype.integer_range()) {
            (Start::Zero, _) => Scalar::Int(0),
            (Start::One, _) => Scalar::Int(1),
            (Start::Lowest, _) if dtype == DType::Bool => Scalar::Bool(false),
            (Start::Highest, _) if dtype == DType::Bool => Scalar::Bool(true),
            (Start::Lowest, Some((low, _))) => Scalar::Int(low as i64),
            (Start::Highest, Some((_, high))) => i64::try_from(high).map_or(Scalar::UInt(high as u64), Scalar::Int),
            (Start::Lowest, None) => Scalar::Float(f64::NEG_INFINITY),
            (Start::Highest, None) => Scalar::Float(f64::INFINITY),
        }
    }
}

/// The sums of `scatter_reduce` divided by how many values went into each.
pub(super) fn mean(x: &Tensor, dim: i64, index: &Tensor, source: &Tensor, include_self: bool, sum: &Tensor) -> Result<Tensor> {
    let ones = Tensor::full(source.shape(), 1, x.dtype(), x.device())?;
    let mut count = Tensor::full(x.shape(), 1, x.dtype(), x.device())?;
    if !include_self {
        count = count.scatter(dim, index, 0)?;
    }
    let count = count.scatter_add(dim, index, &ones)?;
    let count = count.masked_fill(&count.eq(0)?, 1)?;
    if x.dtype().is_integral() { sum.floor_divide(&count) } else { sum.div(&count) }
}

/// Gradients of a tensor and of the values that were multiplied into it, or of which the largest (smallest) stayed.
pub(super) fn vjp(op: &Place, cx: &Cx, grad: &Tensor, indices: &[Tensor], out: &mut Grads) -> Result<()> {
    let (x, values, result) = (cx.input(0)?, cx.input(1)?, cx.output(0)?);
    // Values as many as the indices name places.
    let spread = |t: &Tensor| address::pick("gather", &op.address, t, indices);
    let shape = spread(grad)?;
    let values = values.expand_to(shape.shape())?;
    match op.mode {
        IndexMode::Mul => product(op, cx, grad, &x, &values, &result, indices, out),
        _ => extreme(op, cx, grad, &x, &values, &result, indices, out),
    }
}

fn added(op: &Place, x: &Tensor, values: &Tensor, indices: &[Tensor]) -> Result<Tensor> {
    let address: &Address = &op.address;
    address::place("scatter_add", address, IndexMode::Add, x, values, indices)
}

/// The gradient is shared equally by all that equal the result.
fn extreme(
    op: &Place,
    cx: &Cx,
    grad: &Tensor,
    x: &Tensor,
    values: &Tensor,
    result: &Tensor,
    indices: &[Tensor],
    out: &mut Grads,
) -> Result<()> {
    let spread = |t: &Tensor| address::pick("gather", &op.address, t, indices);
    let of_x = x.eq(result)?.to_dtype(grad.dtype())?;
    let of_values = values.eq(&spread(result)?)?.to_dtype(grad.dtype())?;
    let count = added(op, &of_x, &of_values, indices)?;
    let count = count.masked_fill(&count.eq(0)?, 1)?;
    let share = grad.div(&count)?;
    if cx.needs(0) {
        out[0] = Some(share.mul(&of_x)?);
    }
    if cx.needs(1) {
        out[1] = Some(spread(&share)?.mul(&of_values)?);
    }
    Ok(())
}

/// The derivative in one factor is the product of the others: the result divided by the factor, except where the factor is zero.
fn product(
    op: &Place,
    cx: &Cx,
    grad: &Tensor,
    x: &Tensor,
    values: &Tensor,
    result: &Tensor,
    indices: &[Tensor],
    out: &mut Grads,
) -> Result<()> {
    let spread = |t: &Tensor| address::pick("gather", &op.address, t, indices);
    let (zero_x, zero_values) = (x.eq(0)?, values.eq(0)?);
    // Zeros left out, with their number kept beside.
    let (some_x, some_values) = (x.masked_fill(&zero_x, 1)?, values.masked_fill(&zero_values, 1)?);
    let rest = address::place("scatter", &op.address, IndexMode::Mul, &some_x, &some_values, indices)?;
    let zeros = added(op, &zero_x.to_dtype(grad.dtype())?, &zero_values.to_dtype(grad.dtype())?, indices)?;
    if cx.needs(0) {
        // Where x is the only zero the others' product stays; with another zero there is none.
        let alone = zero_x.logical_and(&zeros.eq(1)?)?;
        let usual = grad.mul(result)?.div(&some_x)?;
        out[0] = Some(Tensor::where_(&alone, &grad.mul(&rest)?, &usual.masked_fill(&zero_x, 0)?)?);
    }
    if cx.needs(1) {
        let alone = zero_values.logical_and(&spread(&zeros)?.eq(1)?)?;
        let usual = spread(&grad.mul(result)?)?.div(&some_values)?;
        let lone = spread(&grad.mul(&rest)?)?;
        out[1] = Some(Tensor::where_(&alone, &lone, &usual.masked_fill(&zero_values, 0)?)?);
    }
    Ok(())
}
