//! The derivative of a convolution with regard to all its inputs, as one operation.

use super::primitive::{Convolution, Kind, apply};
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::{OutSpec, Outputs, Primitive, Reads};
use crate::transform::bind1;
use crate::transform::vectorize::Batch;
use flambeau_base::{Dims, Error, Result};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// Gradients of the input, the weight and the bias of a [`Convolution`]: those that are needed. Inputs are the gradient
/// of its result, its input and its weight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backward {
    pub(super) of: Convolution,
    pub(super) needs: [bool; 3],
    /// Sizes of the convolution's input and weight.
    pub(super) sizes: [Dims; 2],
}

impl Backward {
    fn input(&self) -> Convolution {
        let kind = if self.of.kind == Kind::Output { Kind::Input } else { Kind::Output };
        self.of.other(kind, &self.sizes[0])
    }

    fn weight(&self) -> Convolution {
        self.of.other(Kind::Weight, &self.sizes[1])
    }

    /// The gradient of the weight from a gradient of the result and an input.
    fn of_weight(&self, g: &Tensor, x: &Tensor) -> Result<Tensor> {
        let op = self.weight();
        if self.of.kind == Kind::Output { bind1(&op, &[x, g]) } else { bind1(&op, &[g, x]) }
    }
}

/// The sum over all dimensions but the channels.
fn over_channels(g: &Tensor) -> Result<Tensor> {
    let dims: SmallVec<[i64; 6]> = (0..g.ndim() as i64).filter(|&d| d != 1).collect();
    g.sum_dims(Some(&dims), false, None)
}

impl Primitive for Backward {
    fn name(&self) -> &'static str {
        "convolution_backward"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let [g, x, w] = inputs[..] else { return Err(Error::runtime("convolution_backward: three inputs are needed")) };
        let mut specs = SmallVec::new();
        if self.needs[0] {
            specs.extend(self.input().infer(&[g, w])?);
        }
        if self.needs[1] {
            specs.extend(self.weight().infer(&[x, g])?);
        }
        if self.needs[2] {
            specs.push(OutSpec { layout: flambeau_base::Layout::contiguous(&[g.shape()[1]])?, dtype: g.dtype() });
        }
        Ok(specs)
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let (g, x, w) = (inputs[0], inputs[1], inputs[2]);
        let mut out = Outputs::new();
        if self.needs[0] {
            out.extend(self.input().run(&[g, w])?);
        }
        if self.needs[1] {
            let op = self.weight();
            out.extend(if self.of.kind == Kind::Output { op.run(&[x, g])? } else { op.run(&[g, x])? });
        }
        if self.needs[2] {
            let _guard = crate::autograd::no_grad();
            out.push(over_channels(g)?);
        }
        Ok(out)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        for (from, to) in self.run(inputs)?.iter().zip(outputs) {
            crate::ops::copy_into(to, from)?;
        }
        Ok(())
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let (g, x, w) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
        let mut given = grads.iter_mut();
        let mut next = |needed: bool| if needed { given.next().and_then(Option::take) } else { None };
        let [of_input, of_weight, of_bias] = self.needs.map(&mut next);
        let mut out: Grads = smallvec![None; 3];
        if cx.needs(0) {
            let mut terms: SmallVec<[Tensor; 3]> = SmallVec::new();
            let mut bias = of_bias.as_ref();
            if let Some(v) = &of_input {
                terms.push(apply(&self.of, v, &w, bias.take())?);
            }
            if let Some(v) = &of_weight {
                terms.push(apply(&self.of, &x, v, bias.take())?);
            }
            if let Some(v) = bias {
                let mut sizes: SmallVec<[i64; 6]> = smallvec![1; g.ndim()];
                sizes[1] = v.numel() as i64;
                terms.push(v.reshape(&sizes)?.expand_as(&g)?);
            }
            let mut terms = terms.into_iter();
            if let Some(first) = terms.next() {
                out[0] = Some(terms.try_fold(first, |sum, term| sum.add(&term))?);
            }
        }
        if let (true, Some(v)) = (cx.needs(1), &of_weight) {
            out[1] = Some(bind1(&self.input(), &[&g, v])?);
        }
        if let (true, Some(v)) = (cx.needs(2), &of_input) {
            out[2] = Some(self.of_weight(&g, v)?);
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b111)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        // The gradient of the input alone: that of a weight is one for each example.
        if self.needs != [true, false, false] || batch.has_batch[2] {
            return Ok(None);
        }
        let mut of_input = self.input();
        of_input.sizes[0] *= batch.size;
        let (g, w) = (batch.front(0)?.flatten(0, 1)?, batch.inputs[2]);
        let found = bind1(&of_input, &[&g, w])?;
        let mut sizes = Dims::from_slice(&[batch.size, found.shape()[0] / batch.size]);
        sizes.extend_from_slice(&found.shape()[1..]);
        Ok(Some(smallvec![found.reshape_to(&sizes)?]))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
