//! What a tensor keeps for autograd, and the views of a base.

use super::hooks::Hooks;
use super::node::{Edge, Node, Retained, bury};
use crate::Tensor;
use crate::ops::Primitive;
use crate::ops::view::{View as ViewRule, Viewed};
use crate::tensor::flag;
use flambeau_base::{Error, Layout, Result};
use std::sync::{Arc, Weak};

/// Kept only by tensors that require a gradient, have a history, hooks or a base.
#[derive(Default)]
pub(crate) struct AutogradMeta {
    pub grad: Option<Tensor>,
    /// What forward mode has left, see [`crate::transform::forward`].
    pub tangent: Option<(u32, Tensor)>,
    /// The node that made it, and which of the node's outputs it is.
    pub grad_fn: Option<Edge>,
    /// The node that adds to `grad`, for a leaf.
    pub accumulator: Weak<Node>,
    pub hooks: Option<Box<Hooks>>,
    /// Where a gradient goes that was asked for with `retain_grad`; the node that made the tensor fills it.
    pub retained: Option<Retained>,
    pub view: Option<View>,
    /// For a base: the layouts that it had, each with the version at which it got another (`t_`).
    pub relayouts: Vec<(u32, Layout)>,
}

impl Drop for AutogradMeta {
    fn drop(&mut self) {
        if let Some(edge) = self.grad_fn.take() {
            bury(edge.node);
        }
    }
}

/// How a tensor looks at the memory of another.
///
/// NOTE [views]: a view remembers its base (never itself a view) and the steps from there. A write in
/// place through a view is recorded on the base: its history becomes a `CopySlices` node, and the
/// view's own history is made again from the base's when it is next asked for, which is noticed by
/// comparing `seen` with the version counter that all of them share.
pub(crate) struct View {
    pub base: Tensor,
    pub steps: Arc<ViewStep>,
    /// The version at which `grad_fn` was made.
    pub seen: u32,
}

/// A view operation and those before it.
pub struct ViewStep<P: ?Sized = dyn Primitive> {
    pub(crate) before: Option<Arc<ViewStep>>,
    pub(crate) op: P,
}

impl<P: ?Sized> Drop for ViewStep<P> {
    /// A loop: views of views may be many.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut step) = before {
            before = Arc::get_mut(&mut step).and_then(|s| s.before.take());
        }
    }
}

impl ViewStep {
    /// The same view of what `first` makes of a base.
    pub fn after(self: &Arc<ViewStep>, first: impl ViewRule) -> Arc<ViewStep> {
        let mut before: Arc<ViewStep> = Arc::new(ViewStep { before: None, op: Viewed(first) });
        for step in self.chain() {
            before = step.op.view_step(0, Some(before.clone())).unwrap_or(before);
        }
        before
    }

    /// The steps, the one from the base first.
    pub fn chain(self: &Arc<ViewStep>) -> impl Iterator<Item = &Arc<ViewStep>> {
        let mut steps = vec![self];
        while let Some(before) = &steps[steps.len() - 1].before {
            steps.push(before);
        }
        steps.into_iter().rev()
    }

    /// The same view of another tensor of the base's geometry.
    pub fn replay(self: &Arc<ViewStep>, base: &Tensor) -> Result<Tensor> {
        let mut at = base.clone();
        for step in self.chain() {
            at = crate::transform::bind1(&step.op, &[&at])?;
        }
        Ok(at)
    }
}

/// A retained gradient. A panic while the lock was held leaves a whole value.
pub(crate) fn lock(cell: &Retained) -> std::sync::MutexGuard<'_, Option<Tensor>> {
    cell.lock().unwrap_or_else(|e| e.into_inner())
}

impl Tensor {
    /// Whether gradients flow to this tensor.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        if self.has(flag::REQUIRES_GRAD | flag::GRAD_FN) {
            return true;
        }
        // A view of a base that got a history later.
        self.has(flag::VIEW) && self.view_base_requires_grad()
    }

    #[cold]
    fn view_base_requires_grad(&self) -> bool {
        let base = self.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| v.base.clone());
        base.is_some_and(|b| b.has(flag::GRAD_FN))
    }

    /// Whether it was not made by a recorded operation.
    pub fn is_leaf(&self) -> bool {
        !self.requires_grad() || self.grad_fn().is_none()
    }

    /// Asks for (or does without) a gradient of this leaf.
    ///
    /// `RuntimeError` for a tensor that is not of floating point or complex dtype, or that has a history.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if on && !self.dtype().is_differentiable() {
            return Err(Error::runtime(format!(
                "requires_grad_: only Tensors of floating point and complex dtype can require gradients, got {}",
                self.dtype()
            )));
        }
        if !self.is_leaf() {
            if on {
                return Ok(());
            }
            return Err(Error::runtime(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
            ));
        }
        if on && self.has(flag::INFERENCE) && !super::mode::is_inference() {
            return Err(Error::runtime("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."));
        }
        self.set_flag(flag::REQUIRES_GRAD, on);
        Ok(())
    }

    /// The same tensor, now asking for a gradient.
    pub fn requiring_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    pub(crate) fn with_autograd<R>(&self, f: impl FnOnce(&mut AutogradMeta) -> R) -> R {
        f(self.autograd().get_or_insert_with(Default::default))
    }

    /// The gradient that backward has left here.
    pub fn grad(&self) -> Option<Tensor> {
        self.autograd().as_ref().and_then(|m| match &m.retained {
            Some(cell) => lock(cell).clone(),
            None => m.grad.clone(),
        })
    }

    /// Puts a gradient there, or takes it away.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        // The old one is dropped after the lock is released: its destruction may run code of the front end.
        let old = match (grad, &mut *self.autograd()) {
            (None, None) => None,
            (grad, m) => {
                let m = m.get_or_insert_with(Default::default);
                match &m.retained {
                    Some(cell) => std::mem::replace(&mut *lock(cell), grad),
                    None => std::mem::replace(&mut m.grad, grad),
                }
            }
        };
        drop(old);
    }

    /// The node that made this tensor, made again for a view whose base was written to.
    pub fn grad_fn(&self) -> Option<Arc<Node>> {
        self.history().map(|e| e.node)
    }

    pub(crate) fn history(&self) -> Option<Edge> {
        if self.has(flag::VIEW)
            && let Some(edge) = super::inplace::refresh_view(self)
        {
            return Some(edge);
        }
        if !self.has(flag::GRAD_FN) {
            return None;
        }
        self.autograd().as_ref().and_then(|m| m.grad_fn.clone())
    }

    /// The edge that [`Tensor::history`] last gave, for messages.
    pub(crate) fn grad_fn_as_it_is(&self) -> Option<Edge> {
        self.autograd().as_ref().and_then(|m| m.grad_fn.clone())
    }

    pub(crate) fn set_history(&self, edge: Option<Edge>) {
        let on = edge.is_some();
        let old = self.with_autograd(|m| std::mem::replace(&mut m.grad_fn, edge));
        self.set_flag(flag::GRAD_FN, on);
        drop(old);
    }

    /// Where this tensor's gradient goes: to the node that made it, or to its own accumulation.
    pub fn gradient_edge(&self) -> Option<Edge> {
        if let Some(edge) = self.history() {
            return Some(edge);
        }
        if !self.has(flag::REQUIRES_GRAD) {
            return None;
        }
        if let Some(node) = self.autograd().as_ref().and_then(|m| m.accumulator.upgrade()) {
            return Some(Edge { node, output: 0 });
        }
        // Made outside the lock: the clone in it may call the front end.
        let fresh = Node::accumulator(self);
        let node = self.with_autograd(|m| match m.accumulator.upgrade() {
            Some(node) => node,
            None => {
                m.accumulator = Arc::downgrade(&fresh);
                fresh.clone()
            }
        });
        Some(Edge { node, output: 0 })
    }

    /// The tensor whose memory this one looks at, where it is a view.
    pub fn base(&self) -> Option<Tensor> {
        if !self.has(flag::VIEW) {
            return None;
        }
        self.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| v.base.clone())
    }

    /// Makes `self` known as output `i` of a view of `of`.
    pub(crate) fn mark_view(&self, of: &Tensor, op: &dyn Primitive, i: usize) {
        if self.has(flag::INFERENCE) || self.is(of) {
            return;
        }
        if of.has(flag::VIEW) {
            super::inplace::settle_view(of);
        }
        let above =
            of.has(flag::VIEW).then(|| of.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| (v.base.clone(), v.steps.clone())));
        let (base, before) = match above.flatten() {
            Some((base, steps)) => (base, Some(steps)),
            None => (of.clone(), None),
        };
        let Some(steps) = op.view_step(i, before) else { return };
        let seen = self.version();
        self.with_autograd(|m| m.view = Some(View { base, steps, seen }));
        self.set_flag(flag::VIEW, true);
        let frozen = of.has(flag::FROZEN_VIEW) || !super::mode::is_grad_enabled();
        self.set_flag(flag::FROZEN_VIEW, frozen);
    }
}
