//! Automatic differentiation in reverse: what is recorded, and how it is walked back.
//!
//! [`crate::transform::bind`] records a [`Node`] for each operation on tensors that require a
//! gradient; [`backward`] and [`grad`] walk the nodes in the order opposite to their recording.

mod accumulate;
mod attach;
mod backward;
mod check;
mod function;
pub(crate) mod hooks;
pub(crate) mod inplace;
pub(crate) mod meta;
pub(crate) mod mode;
pub(crate) mod node;
mod owned;
mod run_hooks;
pub(crate) mod saved;

pub use attach::{Kept, Output, attach};
pub use backward::BackwardOptions;
pub use check::gradcheck;
pub use function::{Context, Function, apply};
pub use hooks::{HookId, NodeHook, TensorHook};
pub use meta::ViewStep;
pub use mode::{ModeGuard, enable_grad, inference_mode, is_grad_enabled, is_inference, no_grad, set_grad_enabled, set_inference};
pub use node::{CustomBackward, Cx, Edge, Grads, Node, OutputInfo};
pub use owned::{Owned, visit_owned, visit_owned_by};

use crate::Tensor;
use flambeau_base::{Error, Result, show};

/// Pairs each root with its gradient, which may be left out for a tensor of one element.
fn roots(op: &str, tensors: &[&Tensor], grads: &[Option<Tensor>]) -> Result<Vec<(Edge, Tensor)>> {
    let mut out = Vec::with_capacity(tensors.len());
    for (i, t) in tensors.iter().enumerate() {
        let edge = t
            .gradient_edge()
            .ok_or_else(|| Error::runtime(format!("{op}: element {i} of tensors does not require grad and does not have a grad_fn")))?;
        let grad = match grads.get(i).cloned().flatten() {
            Some(g) if g.shape() != t.shape() => {
                return Err(Error::runtime(format!(
                    "{op}: Mismatch in shape: grad_output[{i}] has a shape of {} and output[{i}] has a shape of {}",
                    show(g.shape()),
                    show(t.shape())
                )));
            }
            Some(g) if g.dtype() == t.dtype() => g,
            Some(g) => g.to_dtype(t.dtype())?,
            None if t.numel() == 1 && !t.dtype().is_complex() => Tensor::full(t.shape(), 1.0, t.dtype(), t.device())?,
            None => {
                let kind = if t.numel() == 1 { "real scalar" } else { "scalar" };
                return Err(Error::runtime(format!(
                    "{op}: grad can be implicitly created only for {kind} outputs, output {i} has shape {} and dtype {}",
                    show(t.shape()),
                    t.dtype()
                )));
            }
        };
        out.push((edge, grad));
    }
    Ok(out)
}

/// Runs backward from `tensors` and adds the gradients to the leaves.
///
/// `grads` holds a gradient for each of them; one may be missing for a tensor of one element.
/// With `inputs`, only these leaves' gradients are added to.
pub fn backward(tensors: &[&Tensor], grads: &[Option<Tensor>], inputs: Option<&[&Tensor]>, options: BackwardOptions) -> Result<()> {
    let roots = roots("backward", tensors, grads)?;
    let Some(inputs) = inputs else {
        backward::run(roots, None, &options)?;
        return Ok(());
    };
    let edges = edges_of("backward", inputs)?;
    let found = backward::run(roots, Some(&edges), &options)?;
    for (leaf, grad) in inputs.iter().zip(found) {
        if let Some(grad) = grad {
            accumulate::accumulate(leaf, grad)?;
        }
    }
    Ok(())
}

fn edges_of(op: &str, inputs: &[&Tensor]) -> Result<Vec<Edge>> {
    if inputs.is_empty() {
        return Err(Error::runtime(format!("{op}: inputs argument cannot be empty.")));
    }
    inputs
        .iter()
        .enumerate()
        .map(|(i, t)| {
            t.gradient_edge()
                .ok_or_else(|| Error::runtime(format!("{op}: One of the differentiated Tensors does not require grad (input {i})")))
        })
        .collect()
}

/// The gradients of `outputs` (weighted by `grads`) in `inputs`; `None` for an input that they do not depend on.
pub fn grad(outputs: &[&Tensor], inputs: &[&Tensor], grads: &[Option<Tensor>], options: BackwardOptions) -> Result<Vec<Option<Tensor>>> {
    let edges = edges_of("grad", inputs)?;
    backward::run(roots("grad", outputs, grads)?, Some(&edges), &options)
}

impl Tensor {
    /// Runs backward from this tensor of one element and adds the gradients to the leaves.
    pub fn backward(&self) -> Result<()> {
        backward(&[self], &[], None, BackwardOptions::default())
    }
}
