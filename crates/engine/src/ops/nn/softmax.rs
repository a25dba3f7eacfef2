//! Softmax and its logarithm.

use super::{around, check_float, into_packed, like, packed};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::Outputs;
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Primitive, Reads};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Result, wrap_dim};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `exp(x) / sum(exp(x))` along a dimension, or its logarithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Softmax {
    dim: usize,
    log: bool,
}

/// The composite form of softmax along `dim`, or of its logarithm.
pub fn softmax_composite(x: &Tensor, dim: i64, log: bool) -> Result<Tensor> {
    let most = x.alias().amax(Some(&[dim]), true)?;
    let shifted = x.sub(&most)?;
    let terms = shifted.exp()?;
    let sum = terms.sum_dims(Some(&[dim]), true, None)?;
    if log { shifted.sub(&sum.log()?) } else { terms.div(&sum) }
}

impl Primitive for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        check_float(self.name(), inputs[0].dtype())?;
        Ok(smallvec![like(inputs[0])?])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let x = packed(inputs[0])?;
        into_packed(&outputs[0], |out| {
            let call = layers::Softmax {
                dtype: x.dtype(),
                sizes: around(x.shape(), self.dim),
                log: self.log,
                input: x.data_ptr()?,
                out: out.data_ptr_mut()?,
            };
            // SAFETY: both are contiguous, of one shape and dtype.
            unsafe { backend(x.device())?.softmax(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let Some(g) = grads[0].take() else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind1(&SoftmaxBackward(self.clone()), &[&g, &cx.output(0)?])?)])
    }

    fn reads(&self) -> Reads {
        Reads::OUTPUT
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&Softmax { dim: self.dim + 1, ..self.clone() })
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The derivative of [`Softmax`]: inputs are the gradient and the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SoftmaxBackward(Softmax);

impl SoftmaxBackward {
    fn decompose(&self, g: &Tensor, y: &Tensor) -> Result<Tensor> {
        let dim = [self.0.dim as i64];
        if self.0.log {
            return g.sub(&y.exp()?.mul(&g.sum_dims(Some(&dim), true, None)?)?);
        }
        y.mul(&g.sub(&g.mul(y)?.sum_dims(Some(&dim), true, None)?)?)
    }
}

impl Primitive for SoftmaxBackward {
    fn name(&self) -> &'static str {
        if self.0.log { "log_softmax_backward" } else { "softmax_backward" }
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        Ok(smallvec![like(inputs[1])?])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let (g, y) = (packed(inputs[0])?, packed(inputs[1])?);
        into_packed(&outputs[0], |out| {
            let call = layers::SoftmaxBackward {
                dtype: y.dtype(),
                sizes: around(y.shape(), self.0.dim),
                log: self.0.log,
                output: y.data_ptr()?,
                grad: g.data_ptr()?,
                out: out.data_ptr_mut()?,
            };
            // SAFETY: all are contiguous, of one shape and dtype.
            unsafe { backend(y.device())?.softmax_backward(&call) }
        })
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (g, y) = (cx.input(0)?, cx.input(1)?);
        let f = |all: &[Tensor]| Ok(vec![self.decompose(&all[0], &all[1])?]);
        let found = super::vjp_of(&f, &[g, y], &[cx.needs(0), cx.needs(1)], grads)?;
        Ok(found.into_iter().collect())
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b11)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.along(&SoftmaxBackward(Softmax { dim: self.0.dim + 1, ..self.0.clone() }))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// `exp(x) / sum(exp(x))` along a dimension; `dtype` converts first.
    pub fn softmax(&self, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        along("softmax", false, self, dim, dtype)
    }

    /// The logarithm of softmax, computed stably; `dtype` converts first.
    pub fn log_softmax(&self, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        along("log_softmax", true, self, dim, dtype)
    }
}

fn along(op: &str, log: bool, x: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    let dim = wrap_dim(op, dim, x.ndim())?;
    let x = x.to_dtype(dtype.unwrap_or(x.dtype()))?;
    bind1(&Softmax { dim, log }, &[&x])
}

fn softmax(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.softmax(a.int(1)?, a.opt_dtype(2)?)?.into())
}

fn log_softmax(a: &Args) -> Result<Out> {
    Ok(a.tensor(0)?.log_softmax(a.int(1)?, a.opt_dtype(2)?)?.into())
}

/// `_softmax_backward_data`: `(g - sum(g * y)) * y`, converted.
fn backward_data(a: &Args) -> Result<Out> {
    let wide = |t: &Tensor| if matches!(t.dtype(), DType::F16 | DType::BF16) { t.to_dtype(DType::F32) } else { Ok(t.clone()) };
    let (g, y) = (wide(a.tensor(0)?)?, wide(a.tensor(1)?)?);
    let product = g.mul(&y)?;
    let sum = product.sum_dims(Some(&[a.int(2)?]), true, Some(product.dtype()))?;
    Ok(product.sub(&y.mul(&sum)?)?.to_dtype(a.dtype(3)?)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor", backward_data)
        .places(crate::ops::table::place::TORCH)
        .doc("The derivative of softmax, from its result.")
        .samples(&["T(2,3), T(2,3), 1, float64"]),
    function("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax)
        .doc("`exp(x) / sum(exp(x))` along `dim`, computed without overflow. `dtype` converts first; integers need it.")
        .samples(&["T(3,5), 1", "T(3,5), 0", "T(2,3,4), 1", "T(2,40), -1", "T(), 0", "T(2,3), 1, dtype=float64"])
        .places(place::TORCH | place::METHOD | place::SPECIAL),
    function("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax)
        .doc("The logarithm of softmax along `dim`, computed stably. `dtype` converts first; integers need it.")
        .samples(&["T(3,5), 1", "T(3,5), 0", "T(2,3,4), 1", "T(2,40), -1", "T(2,3), 1, dtype=float64"])
        .places(place::TORCH | place::METHOD | place::SPECIAL),
];
