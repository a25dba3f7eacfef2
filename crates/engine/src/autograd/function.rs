//! Functions with a derivative of the user's.

use super::mode;
use super::node::{CustomBackward, Edge, Grads, Node, OutputInfo};
use super::saved::{Saved, SavedTensors};
use super::saved_hooks;
use crate::Tensor;
use crate::transform::differentiate::tangents_at;
use crate::transform::forward;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Mutex};

/// A function whose derivative is written by hand.
///
/// Transforms keep to it: at every level of `grad` its `backward` is the derivative, in forward mode its `jvp`, and `vmap`
/// carries each of them out on all examples.
///
/// ```
/// # use flambeau_engine::{Tensor, autograd::{Function, Context, Grads, apply}, base::Result};
/// /// Passes values on and turns gradients around.
/// struct Reverse;
/// impl Function for Reverse {
///     fn forward(&self, _cx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
///         Ok(vec![inputs[0].copy()?])
///     }
///     fn backward(&self, _cx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
///         grads.iter().map(|g| g.as_ref().map(|g| g.neg()).transpose()).collect()
///     }
/// }
/// # fn example(x: &Tensor) -> Result<()> {
/// let y = apply(Reverse, &[x])?;
/// # Ok(())
/// # }
/// ```
pub trait Function: Send + Sync + 'static {
    /// The result; what backward will need goes into the context. Nothing is recorded meanwhile.
    fn forward(&self, cx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// Gradients of the inputs, given those of the outputs; `None` stands for zeros.
    fn backward(&self, cx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;

    /// Tangents of the outputs, given those of the inputs; `None` stands for zeros. `NotImplementedError` unless it is written.
    fn jvp(&self, cx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let _ = (cx, tangents);
        Err(Error::not_implemented(format!("{}: write jvp for this function to use it with forward mode", self.name())))
    }

    /// The name that errors and graphs show.
    fn name(&self) -> String {
        let full = std::any::type_name::<Self>();
        format!("{}Backward", full.rsplit("::").next().unwrap_or(full))
    }
}

/// What a [`Function`] keeps between forward and backward.
#[derive(Default)]
pub struct Context {
    pub(super) to_save: Vec<Tensor>,
    pub(super) saved: Vec<Tensor>,
}

impl Context {
    /// Keeps tensors for backward: inputs or outputs of the function, or others.
    pub fn save(&mut self, tensors: &[&Tensor]) {
        self.to_save = tensors.iter().map(|&t| t.clone()).collect();
    }

    /// The tensors that were kept, in order.
    pub fn saved(&self) -> &[Tensor] {
        &self.saved
    }
}

struct Recorded {
    function: Arc<dyn Function>,
    saved: Mutex<SavedTensors>,
}

impl CustomBackward for Recorded {
    fn name(&self) -> String {
        self.function.name()
    }

    fn backward(&self, node: &Arc<Node>, grads: Grads) -> Result<Grads> {
        let saved = self.saved.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if saved.released {
            return Err(super::node::used_up(&node.name()));
        }
        let saved = saved.tensors.iter().map(|s| s.unpack(node)).collect::<Result<_>>()?;
        let made = self.function.backward(&Context { to_save: Vec::new(), saved }, &grads)?;
        if made.len() != node.next_edges().len() {
            return Err(Error::runtime(format!(
                "{}: backward returned an incorrect number of gradients (expected {}, got {})",
                node.name(),
                node.next_edges().len(),
                made.len()
            )));
        }
        Ok(made.into_iter().collect())
    }

    fn release(&self) {
        let old = std::mem::replace(
            &mut *self.saved.lock().unwrap_or_else(|e| e.into_inner()),
            SavedTensors { released: true, ..SavedTensors::default() },
        );
        drop(old);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What a call gave: the outputs, and what the function keeps of its own tensors.
pub(super) struct Applied {
    pub outputs: Vec<Tensor>,
    pub saved: Vec<Tensor>,
}

/// Runs a function of the user's and records it.
pub fn apply<F: Function>(function: F, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let function: Arc<dyn Function> = Arc::new(function);
    Ok(apply_shared(&function, inputs)?.outputs)
}

/// [`apply`], inside transforms or outside of them.
pub(super) fn apply_shared(function: &Arc<dyn Function>, inputs: &[&Tensor]) -> Result<Applied> {
    match crate::transform::top() {
        Some(top) => super::function_inside::apply(function, inputs, &*top),
        None => apply_here(function, inputs),
    }
}

fn apply_here(function: &Arc<dyn Function>, inputs: &[&Tensor]) -> Result<Applied> {
    let mut cx = Context::default();
    let outputs = {
        let _guard = mode::no_grad();
        // Tangents go by the function's own rule.
        let _tangents = forward::tangents_off();
        function.forward(&mut cx, inputs)?
    };
    let saved = cx.to_save;
    let tangents = tangents_at(inputs, 0);
    let found = if forward::is_forward_enabled() && tangents.iter().any(|t| t.is_some()) {
        let saved = saved.iter().map(|t| t.primal()).collect();
        Some(function.jvp(&Context { to_save: Vec::new(), saved }, &tangents)?)
    } else {
        None
    };
    let outputs = record_call(function, inputs, outputs, &saved, 0)?;
    leave(&outputs, found)?;
    Ok(Applied { outputs, saved })
}

/// Leaves tangents with the outputs of a call.
pub(super) fn leave(outputs: &[Tensor], tangents: Option<Vec<Option<Tensor>>>) -> Result<()> {
    for (out, tangent) in outputs.iter().zip(tangents.unwrap_or_default()) {
        if tangent.is_some() {
            out.set_tangent(tangent)?;
        }
    }
    Ok(())
}

/// Makes the node of a call at a level, where an input of it requires a gradient; the outputs with their history.
pub(super) fn record_call(
    function: &Arc<dyn Function>,
    inputs: &[&Tensor],
    mut outputs: Vec<Tensor>,
    saved: &[Tensor],
    level: u32,
) -> Result<Vec<Tensor>> {
    let here = |t: &Tensor| level == 0 || t.is_at_level(level);
    if !mode::is_grad_enabled() || !inputs.iter().any(|t| here(t) && t.requires_grad()) {
        return Ok(outputs);
    }
    for out in &mut outputs {
        // An input that is handed on becomes an output of its own.
        if inputs.iter().any(|t| t.is(out)) {
            *out = out.alias();
        }
    }
    let mut tensors: SmallVec<[Saved; 3]> = saved
        .iter()
        .map(|t| match outputs.iter().position(|o| o.is(t)) {
            Some(i) => Saved::output(t, i),
            None => Saved::input(t),
        })
        .collect();
    if saved_hooks::active() {
        saved_hooks::pack_all(&mut tensors, level)?;
    }
    let recorded = Recorded { function: function.clone(), saved: Mutex::new(SavedTensors { tensors, released: false }) };
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| if here(t) { t.gradient_edge() } else { None }).collect();
    let node = Node::custom(Box::new(recorded), edges, outputs.iter().map(OutputInfo::of).collect());
    for (i, out) in outputs.iter().enumerate() {
        if out.dtype().is_differentiable() {
            out.set_history(Some(Edge { node: node.clone(), output: i as u32 }));
        }
    }
    Ok(outputs)
}
