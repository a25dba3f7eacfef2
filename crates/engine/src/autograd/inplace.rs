//! In-place operations and the history of what they change. See NOTE [views] in `meta`.

use super::meta::{View, ViewStep};
use super::mode;
use super::node::{Edge, Grads, Kind, Node, OutputInfo};
use super::saved::SavedTensors;
use crate::Tensor;
use crate::ops::view::AsStrided;
use crate::tensor::flag;
use flambeau_base::{Error, Layout, Result};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, Mutex};

/// An operation that wrote through a view, seen as an operation on the view's base.
pub(crate) struct CopySlices {
    steps: Arc<ViewStep>,
    /// Dense, of the base's shape: gradients of the base are laid out so that the view can be made again on them.
    base: Layout,
    inner: Mutex<Option<Arc<Node>>>,
}

impl CopySlices {
    /// The gradient of the base: outside the view it passes, inside it goes through the operation's derivative.
    pub fn backward(&self, node: &Arc<Node>, mut grads: Grads) -> Result<Grads> {
        let inner = self.inner.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let inner = inner.ok_or_else(|| super::node::used_up(&node.name()))?;
        let Some(grad) = grads[0].take() else { return Ok(smallvec![None; node.edges.len()]) };
        let mut whole = grad.laid_out_as(&self.base)?;
        if whole.strides() != self.base.strides() {
            // They differ where a dimension has one element, which steps of the view may ask for all the same.
            whole = crate::ops::view::view(AsStrided::onto(&self.base, whole.layout()), &whole)?;
        }
        let window = self.steps.replay(&whole)?;
        let mut made = inner.apply(smallvec![Some(window.copy()?)])?;
        made.resize(node.edges.len(), None);
        match made[0].take() {
            Some(g) => window.copy_(&g)?,
            None => window.zero_()?,
        };
        made[0] = Some(whole);
        Ok(made)
    }

    pub fn release(&self) {
        let inner = self.inner.lock().unwrap_or_else(|e| e.into_inner()).take();
        drop(inner);
    }
}

/// Refuses in-place changes that autograd could not follow.
pub(crate) fn check(op: &str, target: &Tensor, needs_grad: bool) -> Result<()> {
    refuse(op, target, needs_grad)?;
    if super::writes::watched() {
        super::writes::announce(op, target)?;
    }
    Ok(())
}

fn refuse(op: &str, target: &Tensor, needs_grad: bool) -> Result<()> {
    if target.has(flag::INFERENCE) && !mode::is_inference() {
        return Err(Error::runtime(format!(
            "{op}: Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor before doing inplace update."
        )));
    }
    if !mode::is_grad_enabled() {
        return Ok(());
    }
    if target.has(flag::REQUIRES_GRAD) && target.is_leaf() {
        return Err(Error::runtime(format!(
            "{op}: a leaf Variable that requires grad is being used in an in-place operation. Wrap the write in no_grad(), or use the operation that makes a new tensor."
        )));
    }
    if let Some(base) = target.base()
        && (needs_grad || target.requires_grad() || base.has(flag::REQUIRES_GRAD))
    {
        if target.has(flag::FROZEN_VIEW) {
            return Err(Error::runtime(format!(
                "{op}: a view was created in no_grad mode (or is one of several outputs of one operation) and is being modified inplace with grad mode enabled. Make the view again with gradients enabled, or clone() it."
            )));
        }
        if base.has(flag::REQUIRES_GRAD) && base.is_leaf() {
            return Err(Error::runtime(format!(
                "{op}: a view of a leaf Variable that requires grad is being used in an in-place operation."
            )));
        }
    }
    Ok(())
}

/// Makes `node`, which changed `target`, the history of `target`, or of its base where it is a view.
pub(crate) fn rebase(target: &Tensor, node: Arc<Node>, base_edge: Option<Edge>) -> Result<()> {
    let view = if target.has(flag::VIEW) {
        settle_view(target);
        target.autograd().as_ref().and_then(|m| m.view.as_ref()).map(|v| (v.base.clone(), v.steps.clone()))
    } else {
        None
    };
    let Some((base, steps)) = view else {
        move_retained(target, &node);
        target.set_history(Some(Edge { node, output: 0 }));
        return Ok(());
    };
    let mut edges: SmallVec<[Option<Edge>; 2]> = smallvec![base_edge];
    edges.extend(node.edges.iter().skip(1).cloned());
    let layout = base.layout();
    let dense = if layout.is_non_overlapping_and_dense() { layout.clone().with_offset(0) } else { Layout::contiguous(layout.sizes())? };
    let slices = CopySlices { steps, base: dense, inner: Mutex::new(Some(node)) };
    let outer = Node::new(Kind::CopySlices(Box::new(slices)), edges, smallvec![OutputInfo::of(&base)], SavedTensors::default());
    base.set_history(Some(Edge { node: outer, output: 0 }));
    Ok(())
}

/// What a tensor retains is the gradient of its value after the write.
fn move_retained(target: &Tensor, node: &Arc<Node>) {
    let Some(cell) = target.autograd().as_ref().and_then(|m| m.retained.clone()) else { return };
    if let Some(old) = target.grad_fn_as_it_is()
        && let Some(hooks) = old.node.hooks().as_mut()
    {
        hooks.retained.retain(|(_, c)| !Arc::ptr_eq(c, &cell));
    }
    node.retain_grad(0, cell);
}

/// Puts before a view's steps the way to the layout that its base had, where the base has got another since (`t_`).
pub(crate) fn settle_view(t: &Tensor) {
    let relaid = |v: &&View| v.base.has(flag::RELAID);
    let found = t.autograd().as_ref().and_then(|m| m.view.as_ref()).filter(relaid).map(|v| (v.base.clone(), v.steps.clone(), v.seen));
    let Some((base, steps, seen)) = found else { return };
    let before = base.autograd().as_ref().and_then(|m| m.relayouts.iter().find(|(at, _)| *at > seen).map(|(_, layout)| layout.clone()));
    let Some(before) = before else { return };
    let back = AsStrided::onto(&before, base.layout());
    let steps = steps.after(back);
    let seen = base.autograd().as_ref().and_then(|m| m.relayouts.last()).map_or(seen, |(at, _)| *at);
    t.with_autograd(|m| {
        if let Some(view) = &mut m.view {
            (view.steps, view.seen) = (steps, seen);
        }
    });
}

/// The history of a view whose memory was written to since it was last asked for; `None` where nothing happened.
pub(crate) fn refresh_view(t: &Tensor) -> Option<Edge> {
    let now = t.version();
    settle_view(t);
    let (base, steps) = {
        let guard = t.autograd();
        let view = guard.as_ref()?.view.as_ref()?;
        if view.seen == now {
            return None;
        }
        (view.base.clone(), view.steps.clone())
    };
    let edge = base.gradient_edge()?;
    let edge = replay_history(&base, edge, &steps).ok()?;
    let old = t.with_autograd(|m| {
        if let Some(view) = &mut m.view {
            view.seen = now;
        }
        m.grad_fn.replace(edge.clone())
    });
    t.set_flag(flag::GRAD_FN, true);
    drop(old);
    Some(edge)
}

/// Nodes for the steps from a base to a view.
fn replay_history(base: &Tensor, mut edge: Edge, steps: &Arc<ViewStep>) -> Result<Edge> {
    let _guard = mode::no_grad();
    let mut at = base.alias();
    for step in steps.chain() {
        at = crate::transform::bind1(&step.op, &[&at])?;
        let node =
            Node::new(Kind::Primitive(step.op.boxed()), smallvec![Some(edge)], smallvec![OutputInfo::of(&at)], SavedTensors::default());
        edge = Edge { node, output: 0 };
    }
    Ok(edge)
}
