//! Automatic differentiation in reverse: what is recorded, and how it is walked back.
//!
//! [`crate::transform::bind`] records a [`Node`] for each operation on tensors that require a
//! gradient; [`backward`] and [`grad`] walk the nodes in the order opposite to their recording.

mod accumulate;
pub(crate) mod anomaly;
mod attach;
pub(crate) mod backward;
mod check;
mod function;
mod function_inside;
pub(crate) mod hooks;
pub(crate) mod inplace;
pub(crate) mod meta;
pub(crate) mod mode;
pub(crate) mod node;
mod owned;
mod run_hooks;
pub(crate) mod saved;
pub(crate) mod saved_hooks;
pub(crate) mod writes;

pub use anomaly::{Watch, is_anomaly, is_anomaly_check_nan, set_anomaly, set_watch};
pub use attach::{Kept, Output, attach};
pub use backward::{BackwardOptions, will_run};
pub use check::gradcheck;
pub use function::{Context, Function, apply};
pub use hooks::{HookId, NodeHook, TensorHook};
pub use meta::ViewStep;
pub use mode::{ModeGuard, enable_grad, inference_mode, is_grad_enabled, is_inference, no_grad, set_grad_enabled, set_inference};
pub use node::{CustomBackward, Cx, Edge, Grads, Node, Notes, OutputInfo};
pub use owned::{Owned, visit_owned, visit_owned_by};
pub use saved_hooks::{Packed, SavedHooks, forbid_saved_hooks, pop_saved_hooks, push_saved_hooks, saved_hooks_forbidden};
pub use writes::{WriteHook, pop_write_hook, push_write_hook};

use crate::Tensor;
use flambeau_base::{Error, Result, show};

/// Pairs each root with its gradient, which may be left out for a tensor of one element.
fn roots(op: &str, edges: &[Edge], grads: &[Option<Tensor>]) -> Result<Vec<(Edge, Tensor)>> {
    let mut out = Vec::with_capacity(edges.len());
    for (i, edge) in edges.iter().enumerate() {
        let Some(info) = edge.node.output_infos().get(edge.output as usize) else {
            return Err(Error::runtime(format!("{op}: {} has no output {}", edge.node.name(), edge.output)));
        };
        let numel: usize = info.sizes.iter().product();
        let grad = match grads.get(i).cloned().flatten() {
            Some(g) if g.shape() != &info.sizes[..] => {
                return Err(Error::runtime(format!(
                    "{op}: Mismatch in shape: grad_output[{i}] has a shape of {} and output[{i}] has a shape of {}",
                    show(g.shape()),
                    show(&info.sizes)
                )));
            }
            Some(g) if g.dtype() == info.dtype => g,
            Some(g) => g.to_dtype(info.dtype)?,
            None if numel == 1 && !info.dtype.is_complex() => Tensor::full(&info.sizes, 1.0, info.dtype, info.device)?,
            None => {
                let kind = if numel == 1 { "real scalar" } else { "scalar" };
                return Err(Error::runtime(format!(
                    "{op}: grad can be implicitly created only for {kind} outputs, output {i} has shape {} and dtype {}",
                    show(&info.sizes),
                    info.dtype
                )));
            }
        };
        out.push((edge.clone(), grad));
    }
    Ok(out)
}

fn root_edges(op: &str, tensors: &[&Tensor]) -> Result<Vec<Edge>> {
    let mut edges = Vec::with_capacity(tensors.len());
    for (i, t) in tensors.iter().enumerate() {
        edges
            .push(t.gradient_edge().ok_or_else(|| {
                Error::runtime(format!("{op}: element {i} of tensors does not require grad and does not have a grad_fn"))
            })?);
    }
    Ok(edges)
}

/// Runs backward from `tensors` and adds the gradients to the leaves.
///
/// `grads` holds a gradient for each of them; one may be missing for a tensor of one element.
/// With `inputs`, only these leaves' gradients are added to.
pub fn backward(tensors: &[&Tensor], grads: &[Option<Tensor>], inputs: Option<&[&Tensor]>, options: BackwardOptions) -> Result<()> {
    let from = root_edges("backward", tensors)?;
    let Some(inputs) = inputs else { return backward_from(&from, grads, None, options) };
    let edges = edges_of("backward", inputs)?;
    let pairs: Vec<(Edge, Option<Tensor>)> = edges.into_iter().zip(inputs.iter().map(|&t| Some(t.clone()))).collect();
    backward_from(&from, grads, Some(&pairs), options)
}

/// [`backward`] from places of the graph. With `inputs`, the gradients that reach these places are added to the tensors
/// beside them, and to those of leaves' own nodes.
pub fn backward_from(
    from: &[Edge],
    grads: &[Option<Tensor>],
    inputs: Option<&[(Edge, Option<Tensor>)]>,
    options: BackwardOptions,
) -> Result<()> {
    let roots = roots("backward", from, grads)?;
    let Some(inputs) = inputs else {
        backward::run(roots, None, &options)?;
        return Ok(());
    };
    if inputs.is_empty() {
        return Err(Error::runtime("backward: inputs argument cannot be empty."));
    }
    let edges: Vec<Edge> = inputs.iter().map(|(e, _)| e.clone()).collect();
    let found = backward::run(roots, Some(&edges), &options)?;
    for ((edge, tensor), grad) in inputs.iter().zip(found) {
        if let (Some(grad), Some(tensor)) = (grad, tensor.as_ref().or(edge.node.variable())) {
            accumulate::accumulate(tensor, grad)?;
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
    grad_from(&root_edges("grad", outputs)?, &edges, grads, options)
}

/// [`grad`] from places of the graph to places of the graph.
pub fn grad_from(from: &[Edge], to: &[Edge], grads: &[Option<Tensor>], options: BackwardOptions) -> Result<Vec<Option<Tensor>>> {
    backward::run(roots("grad", from, grads)?, Some(to), &options)
}

impl Tensor {
    /// Runs backward from this tensor of one element and adds the gradients to the leaves.
    pub fn backward(&self) -> Result<()> {
        backward(&[self], &[], None, BackwardOptions::default())
    }
}
