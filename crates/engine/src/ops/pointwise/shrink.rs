//! Activations in pieces: a line above zero, another one, or nothing, elsewhere.
//!
//! Each has its gradient as an operation of its own, which looks at where the values lie and rounds once.

use super::{Operand, Rule, Spec, call};
use crate::Tensor;
use crate::ops::Reads;
use crate::ops::table::{Args, Op, Out, choose, function, place, pointwise};
use flambeau_base::{DType, Error, Result};
use smallvec::smallvec;

/// `g` where the value lies strictly between two bounds: operands `g, x, low, high`.
static BETWEEN: Spec = Spec::new("hardtanh_backward", Rule::First, |k, x| {
    let (above, below) = (k.gt(x[1], x[2]), k.lt(x[1], x[3]));
    let (inside, zero) = (k.and(above, below), k.like(x[0], 0));
    k.select(inside, x[0], zero)
})
.params(2)
.vjp(Reads::inputs(0b10), |cx, gg| {
    let again = || call(&BETWEEN, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(2)?).into(), (&cx.operand(3)?).into()]);
    Ok(smallvec![cx.when(0, again)?, None, None, None])
});

/// The gradient where the value lies strictly between two numbers.
pub(super) fn between(g: &Tensor, x: &Tensor, low: Operand, high: Operand) -> Result<Tensor> {
    call(&BETWEEN, &[g.into(), x.into(), low, high])
}

/// `g` above zero, `slope * g` elsewhere: operands `g, x, slope`.
static STEP: Spec = Spec::new("leaky_relu_backward", Rule::First, |k, x| {
    let (g, a, slope) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    let (zero, low) = (k.like(a, 0.0), k.mul(g, slope));
    let on = k.gt(a, zero);
    k.select(on, g, low)
})
.vjp(Reads::inputs(0b111), |cx, gg| {
    let again = || call(&STEP, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(2)?).into()]);
    let slope = || call(&LOW, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(0)?).into()]);
    Ok(smallvec![cx.when(0, again)?, None, cx.when(2, slope)?])
});

/// The product of two numbers where the value is not above zero: operands `g, x, y`.
static LOW: Spec = Spec::new("prelu_weight_backward", Rule::First, |k, x| {
    let (g, a, y) = (k.widen(x[0]), k.widen(x[1]), k.widen(x[2]));
    let (zero, low) = (k.like(a, 0.0), k.mul(g, y));
    let on = k.gt(a, zero);
    k.select(on, zero, low)
})
.vjp(Reads::inputs(0b111), |cx, gg| {
    let with = |i: usize| call(&LOW, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(i)?).into()]);
    Ok(smallvec![cx.when(0, || with(2))?, None, cx.when(2, || with(0))?])
});

/// The gradient above zero, its product with a slope elsewhere.
pub(super) fn step(g: &Tensor, x: &Tensor, slope: Operand) -> Result<Tensor> {
    call(&STEP, &[g.into(), x.into(), slope])
}

static PRELU: Spec = Spec::new("prelu", Rule::Common, |k, x| {
    let (a, slope) = (k.widen(x[0]), k.widen(x[1]));
    let (zero, low) = (k.like(a, 0.0), k.mul(a, slope));
    let on = k.gt(a, zero);
    k.select(on, a, low)
})
.refuses(|d| !d.is_float())
.vjp(Reads::inputs(0b11), |cx, g| {
    let (x, w) = (cx.tensor(0)?, cx.tensor(1)?);
    Ok(smallvec![cx.when(0, || step(g, &x, (&w).into()))?, cx.when(1, || call(&LOW, &[g.into(), (&x).into(), (&x).into()]))?])
});

fn prelu(a: &Args) -> Result<Out> {
    let (x, w) = (a.tensor(0)?, a.tensor(1)?);
    if x.dtype() != w.dtype() {
        return Err(Error::runtime(format!("prelu: Type promoting not supported. Got {} and {}", x.dtype(), w.dtype())));
    }
    if w.ndim() > 1 {
        return Err(Error::runtime(format!("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}", w.ndim())));
    }
    let channels = if x.ndim() > 1 { x.shape()[1] } else { 1 };
    if w.numel() != 1 && w.numel() != channels {
        return Err(Error::runtime(format!(
            "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {channels}.",
            w.numel()
        )));
    }
    let mut shape = vec![1; x.ndim()];
    if w.numel() != 1 {
        shape[1] = w.numel();
    }
    let w = if w.shape() == shape { w.clone() } else { w.reshape_to(&shape)? };
    Ok(call(&PRELU, &[x.into(), (&w).into()])?.into())
}

/// The value where it lies outside of the range from -lambd to lambd; NaN stays.
static HARDSHRINK: Spec = Spec::new("hardshrink", Rule::Common, |k, x| {
    let low = k.neg(x[1]);
    let (above, below) = (k.ge(x[0], low), k.le(x[0], x[1]));
    let (inside, zero) = (k.and(above, below), k.like(x[0], 0));
    k.select(inside, zero, x[0])
})
.params(1)
.refuses(|d| !d.is_float())
.vjp(Reads::INPUT, |cx, g| {
    Ok(smallvec![Some(call(&SHRINK_BACKWARD, &[g.into(), (&cx.operand(0)?).into(), (&cx.operand(1)?).into()])?), None])
});

static SOFTSHRINK: Spec = Spec::new("softshrink", Rule::Common, |k, x| {
    let (a, lambd) = (k.widen(x[0]), k.widen(x[1]));
    let low = k.neg(lambd);
    let (right, left) = (k.gt(a, lambd), k.lt(a, low));
    let (less, more, zero) = (k.sub(a, lambd), k.add(a, lambd), k.like(a, 0.0));
    // NaN times zero is NaN.
    let middle = k.mul(a, zero);
    let middle = k.select(left, more, middle);
    k.select(right, less, middle)
})
.params(1)
.refuses(|d| !d.is_float())
.vjp(Reads::INPUT, |cx, g| {
    Ok(smallvec![Some(call(&SHRINK_BACKWARD, &[g.into(), (&cx.operand(0)?).into(), (&cx.operand(1)?).into()])?), None])
});

/// The gradient of both: operands `g, x, lambd`.
static SHRINK_BACKWARD: Spec = Spec::new("shrink_backward", Rule::First, |k, x| {
    let low = k.neg(x[2]);
    let (above, below) = (k.ge(x[1], low), k.le(x[1], x[2]));
    let (inside, zero) = (k.and(above, below), k.like(x[0], 0));
    k.select(inside, zero, x[0])
})
.params(1)
.vjp(Reads::inputs(0b10), |cx, gg| {
    let again = || call(&SHRINK_BACKWARD, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(2)?).into()]);
    Ok(smallvec![cx.when(0, again)?, None, None])
});

/// The value where it exceeds the threshold, else the second parameter.
static THRESHOLD: Spec = Spec::new("threshold", Rule::Common, |k, x| {
    let below = k.le(x[0], x[1]);
    k.select(below, x[2], x[0])
})
.params(2)
.refuses(|d| d == DType::Bool || d.is_complex())
.vjp(Reads::INPUT, |cx, g| {
    let x = cx.tensor(0)?;
    Ok(smallvec![Some(call(&THRESHOLD_BACKWARD, &[g.into(), (&x).into(), (&cx.operand(1)?).into()])?), None, None])
});

/// The gradient where the value exceeds the threshold: operands `g, x, threshold`.
static THRESHOLD_BACKWARD: Spec = Spec::new("threshold_backward", Rule::First, |k, x| {
    let (below, zero) = (k.le(x[1], x[2]), k.like(x[0], 0));
    k.select(below, zero, x[0])
})
.params(1)
.vjp(Reads::inputs(0b10), |cx, gg| {
    let again = || call(&THRESHOLD_BACKWARD, &[gg.into(), (&cx.operand(1)?).into(), (&cx.operand(2)?).into()]);
    Ok(smallvec![cx.when(0, again)?, None, None])
});

pub(super) static OPS: &[Op] = &[
    pointwise("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", &HARDSHRINK)
        .doc("`self` where its magnitude exceeds `lambd`, else zero.")
        .places(place::TORCH | place::METHOD | place::NN)
        .samples(&["T(2,3)", "T(2,3), 1.0"])
        .without_inplace(),
    choose("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", |a| {
        let lambd = a.scalar(1)?.to_f64();
        if lambd < 0.0 {
            return Err(Error::runtime(format!("softshrink: lambda must be greater or equal to 0, but found to be {lambd}")));
        }
        Ok((&SOFTSHRINK, smallvec![a.operand(0)?, a.operand(1)?]))
    })
    .doc("`self` moved towards zero by `lambd`, and zero within it.")
    .places(place::NN)
    .samples(&["T(2,3)", "T(2,3), 1.0"])
    .without_inplace(),
    pointwise("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", &THRESHOLD)
        .doc("`self` where it exceeds `threshold`, else `value`.")
        .places(place::TORCH | place::NN)
        .samples(&["T(2,3), 0.5, -1.5"]),
    function("prelu(Tensor self, Tensor weight) -> Tensor", prelu)
        .autocast_lower()
        .doc("`self` above zero, `weight * self` elsewhere: one weight, or one for each channel (dimension 1).")
        .places(place::TORCH | place::METHOD | place::NN)
        .samples(&["T(2,3), T(3)", "T(2,3,2), T(1)", "T(3), T()"])
        .without_out(),
];
