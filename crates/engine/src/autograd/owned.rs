//! What a tensor alone keeps alive: shown to a front end's cycle collector.
//!
//! NOTE [owned]: a collector may count on a reference only if everything that leads to it is part of
//! what it collects. From a tensor whose object owns its only handle, the walk goes on to nodes and
//! tensors all of whose owners it has met; an object is shown only where the walk found every handle
//! that the core has on its tensor. What others own too (a graph that another tensor uses, a tensor
//! that is saved elsewhere) is not shown, so it is kept: never too little, sometimes too much.

use super::attach::Kept;
use super::hooks::Hooks;
use super::meta::AutogradMeta;
use super::node::{Kind, Node};
use super::saved::Saved;
use super::saved_hooks::PackedTensor;
use crate::Tensor;
use std::any::Any;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::Arc;

/// Something that a tensor alone keeps alive.
pub enum Owned<'a> {
    /// The front end's object of a tensor, held by the core.
    Object(NonNull<()>),
    /// A hook or a derivative of the front end's.
    Foreign(&'a dyn Any),
}

/// Nodes that one walk visits at most. The same prefix is walked each time, so that two walks agree.
const BOUND: usize = 100_000;

#[derive(Default)]
struct Walk {
    nodes: HashMap<*const Node, usize>,
    tensors: HashMap<usize, usize>,
    ready: Vec<*const Node>,
    visited: usize,
}

/// Shows what the tensor alone keeps alive. Nothing where it has owners besides its object. Under the front end's lock.
pub fn visit_owned(tensor: &Tensor, visit: &mut dyn FnMut(Owned)) {
    if !tensor.is_unique() || tensor.autograd().is_none() {
        return;
    }
    let mut walk = Walk::default();
    walk.inside(tensor, visit);
    walk.run(visit);
}

/// Shows what these tensors, which an object of the front end keeps, alone keep alive. Under the front end's lock.
pub fn visit_owned_by<'a>(kept: impl Iterator<Item = &'a Kept>, visit: &mut dyn FnMut(Owned)) {
    let mut walk = Walk::default();
    for kept in kept {
        walk.saved(kept.saved(), visit);
    }
    walk.run(visit);
}

impl Walk {
    fn run(&mut self, visit: &mut dyn FnMut(Owned)) {
        while let Some(node) = self.ready.pop() {
            self.visited += 1;
            if self.visited > BOUND {
                return;
            }
            // SAFETY: every owner of the node was met, so nobody drops it during the walk.
            self.inside_node(unsafe { &*node }, visit);
        }
    }

    /// One of the core's handles on a tensor.
    fn tensor(&mut self, t: &Tensor, visit: &mut dyn FnMut(Owned)) {
        let met = self.tensors.entry(t.id()).or_default();
        *met += 1;
        match t.object() {
            Some(object) if t.handles() == *met + 1 => visit(Owned::Object(object)),
            None if t.handles() == *met => self.inside(t, visit),
            _ => {}
        }
    }

    /// What a tensor keeps.
    fn inside(&mut self, t: &Tensor, visit: &mut dyn FnMut(Owned)) {
        let guard = t.autograd();
        let Some(meta) = guard.as_ref() else { return };
        if let Some(grad) = &meta.grad {
            self.tensor(grad, visit);
        }
        if let Some(view) = &meta.view {
            self.tensor(&view.base, visit);
        }
        if let Some(hooks) = &meta.hooks {
            let Hooks { tensor, accumulated } = &**hooks;
            for (_, hook) in tensor.iter().chain(accumulated).filter(|(_, h)| Arc::strong_count(h) == 1) {
                visit(Owned::Foreign(hook.as_any()));
            }
        }
        if let Some(edge) = &meta.grad_fn {
            self.node(&edge.node);
        }
    }

    fn saved(&mut self, saved: &Saved, visit: &mut dyn FnMut(Owned)) {
        match saved {
            Saved::Tensor(t, _) | Saved::Output(t, ..) => self.tensor(t, visit),
            Saved::Packed(packed) => self.packed(packed, visit),
            Saved::None => {}
        }
    }

    /// What hooks made of a saved tensor.
    fn packed(&mut self, packed: &Arc<PackedTensor>, visit: &mut dyn FnMut(Owned)) {
        if Arc::strong_count(packed) > 1 {
            return;
        }
        visit(Owned::Foreign(packed.packed().as_any()));
        if let Some(edge) = packed.edge() {
            self.node(&edge.node);
        }
    }

    /// One handle on a node.
    fn node(&mut self, node: &Arc<Node>) {
        let met = self.nodes.entry(Arc::as_ptr(node)).or_default();
        *met += 1;
        if Arc::strong_count(node) == *met {
            self.ready.push(Arc::as_ptr(node));
        }
    }

    fn inside_node(&mut self, node: &Node, visit: &mut dyn FnMut(Owned)) {
        for edge in node.edges.iter().flatten() {
            self.node(&edge.node);
        }
        match &node.kind {
            Kind::Accumulate(leaf) => self.tensor(leaf, visit),
            Kind::Custom(op) => visit(Owned::Foreign(op.as_any())),
            Kind::Primitive(_) | Kind::CopySlices(_) => {}
        }
        for saved in &node.saved().tensors {
            self.saved(saved, visit);
        }
        if let Some(hooks) = node.hooks().as_ref() {
            if let Some(notes) = hooks.notes.as_ref().filter(|n| Arc::strong_count(n) == 1) {
                visit(Owned::Foreign(&**notes));
            }
            for (_, _, hook) in hooks.tensor.iter().filter(|(_, _, h)| Arc::strong_count(h) == 1) {
                visit(Owned::Foreign(hook.as_any()));
            }
            for (_, hook) in hooks.before.iter().chain(&hooks.after).filter(|(_, h)| Arc::strong_count(h) == 1) {
                visit(Owned::Foreign(hook.as_any()));
            }
        }
    }
}

impl Tensor {
    /// Lets go of gradient, history, hooks and base, where nobody but the tensor's object owns it: for a front end's
    /// cycle collector, which found that nothing uses the tensor any more.
    pub fn forget_owned(&self) {
        if !self.is_unique() {
            return;
        }
        let old: Option<Box<AutogradMeta>> = self.autograd().take();
        if old.is_some() {
            use crate::tensor::flag;
            self.set_flag(flag::GRAD_FN | flag::VIEW, false);
        }
        // Dropped outside the lock: that may run code of the front end.
        drop(old);
    }
}

impl Tensor {
    /// Forgets the history: the tensor becomes a leaf that requires no gradient (`detach_`).
    pub fn forget_history(&self) {
        self.set_history(None);
        self.set_flag(crate::tensor::flag::REQUIRES_GRAD, false);
    }

    /// Whether it was made in inference mode, and so can never be recorded.
    pub fn is_inference(&self) -> bool {
        self.has(crate::tensor::flag::INFERENCE)
    }
}
