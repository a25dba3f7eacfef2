//! Functions with a derivative of the user's.

use super::mode;
use super::node::{CustomBackward, Edge, Grads, Node, OutputInfo};
use super::saved::{Saved, SavedTensors};
use super::saved_hooks;
use crate::Tensor;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Mutex};

/// A function whose derivative is written by hand.
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

    /// The name that errors and graphs show.
    fn name(&self) -> String {
        let full = std::any::type_name::<Self>();
        format!("{}Backward", full.rsplit("::").next().unwrap_or(full))
    }
}

/// What a [`Function`] keeps between forward and backward.
#[derive(Default)]
pub struct Context {
    to_save: Vec<Tensor>,
    saved: Vec<Tensor>,
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

struct Recorded<F> {
    function: F,
    saved: Mutex<SavedTensors>,
}

impl<F: Function> CustomBackward for Recorded<F> {
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

/// Runs a function of the user's and records it.
pub fn apply<F: Function>(function: F, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let mut cx = Context::default();
    let mut outputs = {
        let _guard = mode::no_grad();
        function.forward(&mut cx, inputs)?
    };
    if !mode::is_grad_enabled() || !inputs.iter().any(|t| t.requires_grad()) {
        return Ok(outputs);
    }
    for out in &mut outputs {
        // An input that is handed on becomes an output of its own.
        if inputs.iter().any(|t| t.is(out)) {
            *out = out.alias();
        }
    }
    let mut tensors: SmallVec<[Saved; 3]> = cx
        .to_save
        .iter()
        .map(|t| match outputs.iter().position(|o| o.is(t)) {
            Some(i) => Saved::output(t, i),
            None => Saved::input(t),
        })
        .collect();
    if saved_hooks::active() {
        saved_hooks::pack_all(&mut tensors, 0)?;
    }
    let recorded = Recorded { function, saved: Mutex::new(SavedTensors { tensors, released: false }) };
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| t.gradient_edge()).collect();
    let node = Node::custom(Box::new(recorded), edges, outputs.iter().map(OutputInfo::of).collect());
    for (i, out) in outputs.iter().enumerate() {
        if out.dtype().is_differentiable() {
            out.set_history(Some(Edge { node: node.clone(), output: i as u32 }));
        }
    }
    Ok(outputs)
}
