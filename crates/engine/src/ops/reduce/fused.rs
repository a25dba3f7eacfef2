//! A reduction that takes its input from a pointwise program.

use super::Reduction;
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::ops::pointwise::FusedOp;
use crate::ops::{OutSpec, Primitive};
use flambeau_base::{DType, Error, Result, broadcast_all};
use flambeau_ir::{Body, Program};
use smallvec::SmallVec;
use std::any::Any;

/// `reduction(chain(inputs))` in one pass: the chain's result, its only one, is never stored.
///
/// The same bits as one after the other: the chain rounds as it does alone, and the elements are
/// added in the order in which its stored result would lie.
#[derive(Clone, Debug)]
pub struct FusedReduce {
    /// What makes the elements.
    pub chain: FusedOp,
    /// What puts them together.
    pub reduction: Reduction,
}

impl FusedReduce {
    /// The dtype of the chain's result.
    fn element(&self) -> DType {
        self.chain.program().output_dtypes()[0]
    }

    /// The chain, then what the reduction does to each element first.
    fn program(&self, map: &Program) -> Result<Program> {
        let mut body = Body::new(&self.chain.program().inputs);
        let inputs: Vec<_> = (0..self.chain.program().inputs.len()).map(|i| body.input(i)).collect();
        let elements = body.inline(self.chain.program(), &inputs, 0);
        let mapped = body.inline(map, &elements, self.chain.params().len());
        body.finish(&mapped)
    }
}

impl Primitive for FusedReduce {
    fn name(&self) -> &'static str {
        "fused_reduce"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let sizes = broadcast_all("fused_reduce", inputs.iter().map(|t| t.shape()))?;
        self.reduction.results_for(&sizes, self.element())
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let sizes = broadcast_all("fused_reduce", inputs.iter().map(|t| t.shape()))?;
        let programs = self.reduction.programs(self.element())?;
        let program = self.program(&programs.0)?;
        self.reduction.run_on(&sizes, &program, self.chain.params(), inputs, &programs.1, outputs)
    }

    fn vjp(&self, _: &Cx, _: &mut Grads) -> Result<Grads> {
        Err(Error::runtime("fused_reduce: a fused group is made after differentiation"))
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
