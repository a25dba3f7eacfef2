//! Functions that see gradients pass.

use super::node::{Grads, Retained};
use crate::Tensor;
use flambeau_base::Result;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A function that sees a tensor's gradient and may put another in its place.
pub trait TensorHook: Send + Sync {
    /// Called with the gradient; `None` keeps it.
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>>;
    /// For front ends that look for their own objects.
    fn as_any(&self) -> &dyn Any;
}

/// A function that sees what goes into or comes out of a node.
pub trait NodeHook: Send + Sync {
    /// Called before the node (`outputs` is empty) or after it; `None` keeps what is there. What is
    /// replaced are the gradients given to the node before it, those that it made after it.
    fn call(&self, inputs: &Grads, outputs: &Grads) -> Result<Option<Grads>>;
    /// For front ends that look for their own objects.
    fn as_any(&self) -> &dyn Any;
}

/// Names a registered hook, to take it away again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HookId(pub(crate) u64);

impl HookId {
    /// As a number.
    pub fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn fresh() -> HookId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        HookId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Hooks of a tensor, in the order in which they were registered.
#[derive(Default)]
pub(crate) struct Hooks {
    /// On the gradient of the tensor, before it is used.
    pub tensor: Vec<(HookId, Arc<dyn TensorHook>)>,
    /// After a leaf's gradient was accumulated.
    pub accumulated: Vec<(HookId, Arc<dyn TensorHook>)>,
}

struct Closure<F>(F);

impl<F: Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static> TensorHook for Closure<F> {
    fn call(&self, grad: &Tensor) -> Result<Option<Tensor>> {
        (self.0)(grad)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Tensor {
    /// Registers a function that sees this tensor's gradient during backward, and may replace it.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, base::Result};
    /// # fn example(x: &Tensor) -> Result<()> {
    /// let hook = x.register_hook(|grad| { println!("{:?}", grad.shape()); Ok(None) })?;
    /// x.remove_hook(hook);
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_hook(&self, hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static) -> Result<HookId> {
        self.add_hook(Arc::new(Closure(hook)))
    }

    /// [`Tensor::register_hook`] for a hook of a front end. `RuntimeError` unless the tensor requires a gradient.
    pub fn add_hook(&self, hook: Arc<dyn TensorHook>) -> Result<HookId> {
        if !self.requires_grad() {
            return Err(flambeau_base::Error::runtime("register_hook: cannot register a hook on a tensor that doesn't require gradient"));
        }
        let id = HookId::fresh();
        match self.history() {
            Some(edge) => edge.node.add_tensor_hook(edge.output, id, hook.clone()),
            None => self.with_autograd(|m| m.hooks.get_or_insert_default().tensor.push((id, hook))),
        }
        Ok(id)
    }

    /// Registers a hook that runs when this leaf's gradient has been accumulated.
    pub fn add_accumulated_hook(&self, hook: Arc<dyn TensorHook>) -> Result<HookId> {
        if !self.is_leaf() || !self.requires_grad() {
            return Err(flambeau_base::Error::runtime(
                "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf tensors or tensors that don't require gradient",
            ));
        }
        let id = HookId::fresh();
        self.with_autograd(|m| m.hooks.get_or_insert_default().accumulated.push((id, hook)));
        Ok(id)
    }

    /// Takes a hook away. Nothing happens where it is gone already.
    pub fn remove_hook(&self, id: HookId) {
        if let Some(edge) = self.history() {
            edge.node.remove_hook(id);
        }
        if let Some(hooks) = self.autograd().as_mut().and_then(|m| m.hooks.as_mut()) {
            hooks.tensor.retain(|(i, _)| *i != id);
            hooks.accumulated.retain(|(i, _)| *i != id);
        }
    }

    /// Keeps the gradient of a tensor that is not a leaf in its `grad`.
    pub fn retain_grad(&self) -> Result<()> {
        if !self.requires_grad() {
            return Err(flambeau_base::Error::runtime("retain_grad: can't retain_grad on Tensor that has requires_grad=False"));
        }
        let Some(edge) = self.history() else { return Ok(()) };
        let cell = Retained::default();
        let fresh = self.with_autograd(|m| m.retained.is_none() && m.retained.replace(cell.clone()).is_none());
        if fresh {
            edge.node.retain_grad(edge.output, cell);
        }
        Ok(())
    }

    /// Whether [`Tensor::retain_grad`] was called.
    pub fn retains_grad(&self) -> bool {
        self.autograd().as_ref().is_some_and(|m| m.retained.is_some())
    }
}
