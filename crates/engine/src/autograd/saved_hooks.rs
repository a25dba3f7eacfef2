//! What a front end or a user puts between a tensor that is saved for backward and the graph that keeps it.

use super::meta::AutogradMeta;
use super::mode;
use super::node::{Edge, Node, bury};
use super::saved::{Saved, SavedTensors};
use crate::Tensor;
use crate::tensor::flag;
use flambeau_base::{Error, Result};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

/// Turns tensors that are saved for backward into something else: moved elsewhere, compressed, or a way to compute them.
pub trait SavedHooks: Send + Sync {
    /// Called when a tensor is saved, without recording. It must not change the tensor.
    fn pack(&self, t: &Tensor) -> Result<Box<dyn Packed>>;
}

/// What [`SavedHooks::pack`] made of a tensor.
pub trait Packed: Send + Sync {
    /// The tensor again, of the same shape, dtype and device.
    fn unpack(&self) -> Result<Tensor>;
    /// For front ends that look for their own objects.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Default)]
struct Stack {
    hooks: Vec<Arc<dyn SavedHooks>>,
    forbidden: Option<String>,
}

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static STACK: RefCell<Stack> = RefCell::default();
}

/// From now on, this thread's nodes save what these hooks make of their tensors. `RuntimeError` where hooks are forbidden.
///
/// Of several pairs the one pushed last is used.
pub fn push_saved_hooks(hooks: Arc<dyn SavedHooks>) -> Result<()> {
    STACK.with_borrow_mut(|s| {
        if let Some(why) = &s.forbidden {
            return Err(Error::runtime(why.clone()));
        }
        s.hooks.push(hooks);
        ACTIVE.set(true);
        Ok(())
    })
}

/// Takes back the hooks that were pushed last.
pub fn pop_saved_hooks() {
    let old = STACK.with_borrow_mut(|s| {
        let old = s.hooks.pop();
        ACTIVE.set(!s.hooks.is_empty());
        old
    });
    drop(old);
}

/// Forbids hooks in this thread, with the text of the error, or allows them again; gives what held before.
///
/// `RuntimeError` with that text where there are hooks already.
pub fn forbid_saved_hooks(why: Option<String>) -> Result<Option<String>> {
    STACK.with_borrow_mut(|s| match &why {
        Some(text) if !s.hooks.is_empty() => Err(Error::runtime(text.clone())),
        _ => Ok(std::mem::replace(&mut s.forbidden, why)),
    })
}

/// The text of the error with which hooks are forbidden in this thread.
pub fn saved_hooks_forbidden() -> Option<String> {
    STACK.with_borrow(|s| s.forbidden.clone())
}

/// Whether tensors saved by this thread go through hooks.
#[inline]
pub(crate) fn active() -> bool {
    ACTIVE.get()
}

fn top() -> Option<Arc<dyn SavedHooks>> {
    STACK.with_borrow(|s| s.hooks.last().cloned())
}

/// Packs what a node is about to keep. Transforms have no use for packed tensors: there hooks are an error.
#[cold]
pub(crate) fn pack_all(saved: &mut [Saved], level: u32) -> Result<()> {
    let Some(hooks) = top() else { return Ok(()) };
    if level > 0 {
        return Err(Error::runtime(
            "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks: leave saved_tensors_hooks outside",
        ));
    }
    saved.iter_mut().try_for_each(|s| s.pack_with(&*hooks))
}

/// What the unpacked tensor's history was.
enum Origin {
    Constant,
    /// A leaf, by the node that adds to its gradient: the packed form must not keep the leaf.
    Leaf(Weak<Node>),
    Made(Edge),
    /// An output of the node that saved it.
    Output(u32),
}

/// A tensor in the form that hooks gave it.
pub(crate) struct PackedTensor {
    packed: Box<dyn Packed>,
    origin: Origin,
}

impl PackedTensor {
    /// The tensor with the history that it had.
    pub fn unpack(&self, node: &Arc<Node>) -> Result<Tensor> {
        let found = self.packed.unpack()?;
        if !mode::is_grad_enabled() {
            return Ok(found);
        }
        let out = found.alias();
        match &self.origin {
            Origin::Constant => {}
            Origin::Made(edge) => out.set_history(Some(edge.clone())),
            Origin::Output(index) => out.set_history(Some(Edge { node: node.clone(), output: *index })),
            Origin::Leaf(accumulator) => {
                if accumulator.strong_count() == 0 {
                    return Err(Error::runtime(format!("{}: a saved leaf that went through hooks is gone", node.name())));
                }
                out.with_autograd(|m: &mut AutogradMeta| m.accumulator = accumulator.clone());
                out.set_flag(flag::REQUIRES_GRAD, true);
            }
        }
        Ok(out)
    }

    /// What the hooks gave.
    pub fn packed(&self) -> &dyn Packed {
        &*self.packed
    }

    /// The node that made the tensor.
    pub fn edge(&self) -> Option<&Edge> {
        match &self.origin {
            Origin::Made(edge) => Some(edge),
            _ => None,
        }
    }
}

impl Drop for PackedTensor {
    fn drop(&mut self) {
        if let Origin::Made(edge) = std::mem::replace(&mut self.origin, Origin::Constant) {
            bury(edge.node);
        }
    }
}

impl Saved {
    /// Replaces the tensor by what hooks make of it.
    pub fn pack_with(&mut self, hooks: &dyn SavedHooks) -> Result<()> {
        let (t, origin) = match &*self {
            Saved::None | Saved::Packed(_) => return Ok(()),
            Saved::Output(t, _, index) => (t.clone(), Origin::Output(*index)),
            Saved::Tensor(t, _) => {
                let origin = match t.gradient_edge() {
                    None => Origin::Constant,
                    Some(edge) if edge.node.variable().is_some() => Origin::Leaf(Arc::downgrade(&edge.node)),
                    Some(edge) => Origin::Made(edge),
                };
                (t.clone(), origin)
            }
        };
        let version = t.version();
        let packed = {
            let _guard = mode::no_grad();
            hooks.pack(&t)?
        };
        if t.version() != version {
            return Err(Error::runtime(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place operations: clone() first.",
            ));
        }
        *self = Saved::Packed(Arc::new(PackedTensor { packed, origin }));
        Ok(())
    }
}

impl Saved {
    /// The address of the memory, and how many bytes of it the tensor is.
    pub fn memory(&self) -> Option<(usize, usize)> {
        match self {
            Saved::None => None,
            Saved::Tensor(t, _) | Saved::Output(t, ..) => Some((t.data_ptr().map_or(t.id(), |p| p as usize), t.numel() * t.dtype().size())),
            Saved::Packed(p) => Some((std::ptr::from_ref(&**p) as usize, 0)),
        }
    }
}

impl SavedTensors {
    /// Packed tensors become tensors again.
    pub fn unpacked(mut self, node: &Arc<Node>) -> Result<SavedTensors> {
        for s in &mut self.tensors {
            if let Saved::Packed(p) = s {
                let t = p.unpack(node)?;
                *s = Saved::Tensor(t.clone(), t.version());
            }
        }
        Ok(self)
    }
}

impl Node {
    /// Whether what it saved was freed by a backward.
    pub fn is_released(&self) -> bool {
        self.saved().released
    }

    /// What is saved: for each tensor the address of its memory, and how many bytes of it the tensor is (none, where hooks packed it).
    pub fn saved_memory(&self) -> Vec<(usize, usize)> {
        self.saved().tensors.iter().filter_map(Saved::memory).collect()
    }

    /// The tensor saved at a place. `RuntimeError` where it was freed, or changed in place since.
    pub fn saved_tensor(self: &Arc<Node>, place: usize) -> Result<Option<Tensor>> {
        let saved = {
            let guard = self.saved();
            if guard.released {
                return Err(super::node::used_up(&self.name()));
            }
            guard.tensors.get(place).cloned()
        };
        match saved {
            None | Some(Saved::None) => Ok(None),
            Some(saved) => saved.unpack(self).map(Some),
        }
    }

    /// Puts hooks on the tensor saved at a place. `RuntimeError` where it was freed or has hooks.
    pub fn hook_saved(&self, place: usize, hooks: &dyn SavedHooks) -> Result<()> {
        let found = {
            let guard = self.saved();
            if guard.released { Some(Saved::None) } else { guard.tensors.get(place).cloned() }
        };
        // Packed without the lock: hooks may look at the graph.
        let packed = hooked(found, hooks)?;
        let old = self.saved().tensors.get_mut(place).map(|s| std::mem::replace(s, packed));
        drop(old);
        Ok(())
    }
}

/// A saved tensor with hooks, where that may be.
pub(super) fn hooked(saved: Option<Saved>, hooks: &dyn SavedHooks) -> Result<Saved> {
    match saved {
        None | Some(Saved::None) => Err(Error::runtime(
            "Calling register_hooks on a saved tensor after it has been freed (or with value None). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True to keep them.",
        )),
        Some(Saved::Packed(_)) => Err(Error::runtime(
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.",
        )),
        Some(mut saved) => {
            saved.pack_with(hooks)?;
            Ok(saved)
        }
    }
}
