//! Nodes of the graph that backward walks.

use super::hooks::{HookId, NodeHook, TensorHook};
use super::inplace::CopySlices;
use super::saved::{Saved, SavedTensors};
use crate::Tensor;
use crate::ops::Primitive;
use flambeau_base::{DType, Device, Dims, Error, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Gradients by position; `None` stands for zeros.
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// Where a gradient goes: to a node, as the gradient of so many-th of its outputs.
#[derive(Clone)]
pub struct Edge {
    /// The node.
    pub node: Arc<Node>,
    /// Which of its forward outputs the gradient belongs to.
    pub output: u32,
}

/// What a forward output looked like.
#[derive(Clone, Debug)]
pub struct OutputInfo {
    /// Its shape.
    pub sizes: Dims,
    /// Its dtype.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
}

impl OutputInfo {
    /// Of a tensor.
    pub fn of(t: &Tensor) -> OutputInfo {
        OutputInfo { sizes: Dims::from_slice(t.shape()), dtype: t.dtype(), device: t.device() }
    }
}

/// A function of a user's, recorded with its derivative. See [`crate::autograd::Function`].
pub trait CustomBackward: Send + Sync {
    /// The name that errors and graphs show.
    fn name(&self) -> String;
    /// Gradients of the inputs, given those of the outputs.
    fn backward(&self, node: &Arc<Node>, grads: Grads) -> Result<Grads>;
    /// Forgets what was saved, after backward has passed without `retain_graph`.
    fn release(&self);
    /// For front ends that look for their own objects.
    fn as_any(&self) -> &dyn Any;
}

pub(crate) enum Kind {
    Primitive(Box<dyn Primitive>),
    Accumulate(Tensor),
    Custom(Box<dyn CustomBackward>),
    CopySlices(Box<CopySlices>),
}

/// One recorded operation: what it was, what it saved, and where the gradients of its inputs go.
pub struct Node {
    sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    pub(crate) outputs: SmallVec<[OutputInfo; 1]>,
    pub(crate) saved: Mutex<SavedTensors>,
    pub(crate) hooks: Mutex<Option<Box<NodeHooks>>>,
}

/// A gradient kept for a tensor that is not a leaf. The tensor owns the node, so the node must not own the tensor: both hold this.
pub(crate) type Retained = Arc<Mutex<Option<Tensor>>>;

#[derive(Default)]
pub(crate) struct NodeHooks {
    pub tensor: Vec<(u32, HookId, Arc<dyn TensorHook>)>,
    pub retained: Vec<(u32, Retained)>,
    pub before: Vec<(HookId, Arc<dyn NodeHook>)>,
    pub after: Vec<(HookId, Arc<dyn NodeHook>)>,
    /// What a front end notes with the node.
    pub notes: Option<Notes>,
}

/// What a front end notes with a node.
pub type Notes = Arc<dyn Any + Send + Sync>;

fn next_sequence() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Node {
    pub(crate) fn new(
        kind: Kind,
        edges: SmallVec<[Option<Edge>; 2]>,
        outputs: SmallVec<[OutputInfo; 1]>,
        saved: SavedTensors,
    ) -> Arc<Node> {
        let node = Arc::new(Node { sequence: next_sequence(), kind, edges, outputs, saved: Mutex::new(saved), hooks: Mutex::new(None) });
        if super::anomaly::is_anomaly() {
            super::anomaly::recorded(&node);
        }
        node
    }

    /// The node that adds to a leaf's gradient. Backward runs it as soon as it is ready.
    pub(crate) fn accumulator(leaf: &Tensor) -> Arc<Node> {
        Arc::new(Node {
            sequence: u64::MAX,
            kind: Kind::Accumulate(leaf.clone()),
            edges: SmallVec::new(),
            outputs: smallvec::smallvec![OutputInfo::of(leaf)],
            saved: Mutex::default(),
            hooks: Mutex::new(None),
        })
    }

    /// A node of a user's function with its edges and what its outputs look like.
    pub fn custom(op: Box<dyn CustomBackward>, edges: SmallVec<[Option<Edge>; 2]>, outputs: SmallVec<[OutputInfo; 1]>) -> Arc<Node> {
        Node::new(Kind::Custom(op), edges, outputs, SavedTensors::default())
    }

    /// The operation's name as PyTorch shows it: `AddBackward0`, `AccumulateGrad`.
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Primitive(op) => {
                let camel: String = op.name().split('_').map(capitalised).collect();
                format!("{camel}Backward0")
            }
            Kind::Accumulate(_) => "AccumulateGrad".into(),
            Kind::Custom(op) => op.name(),
            Kind::CopySlices(_) => "CopySlices".into(),
        }
    }

    /// When it was recorded, counted over all nodes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where the gradients of its inputs go.
    pub fn next_edges(&self) -> &[Option<Edge>] {
        &self.edges
    }

    /// What its forward outputs looked like.
    pub fn output_infos(&self) -> &[OutputInfo] {
        &self.outputs
    }

    /// The leaf whose gradient this node adds to.
    pub fn variable(&self) -> Option<&Tensor> {
        match &self.kind {
            Kind::Accumulate(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The user's function, where it is one.
    pub fn custom_op(&self) -> Option<&dyn CustomBackward> {
        match &self.kind {
            Kind::Custom(op) => Some(&**op),
            _ => None,
        }
    }

    pub(crate) fn saved(&self) -> MutexGuard<'_, SavedTensors> {
        self.saved.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Runs the derivative.
    pub(crate) fn apply(self: &Arc<Node>, mut grads: Grads) -> Result<Grads> {
        match &self.kind {
            Kind::Primitive(op) => {
                let saved = self.saved_for_use()?;
                op.vjp(&Cx { node: self, saved: &saved }, &mut grads)
            }
            Kind::Accumulate(leaf) => {
                if let Some(grad) = grads[0].take() {
                    super::accumulate::accumulate(leaf, grad)?;
                }
                Ok(Grads::new())
            }
            Kind::Custom(op) => op.backward(self, grads),
            Kind::CopySlices(op) => op.backward(self, grads),
        }
    }

    pub(crate) fn saved_for_use(self: &Arc<Node>) -> Result<SavedTensors> {
        let saved = self.saved();
        if saved.released {
            return Err(used_up(&self.name()));
        }
        let found = saved.clone();
        drop(saved);
        if found.tensors.iter().any(|s| matches!(s, Saved::Packed(_))) { found.unpacked(self) } else { Ok(found) }
    }

    /// Forgets what was saved. Dropped outside the lock: that may free much.
    pub(crate) fn release(&self) {
        if let Kind::Custom(op) = &self.kind {
            op.release();
        }
        if let Kind::CopySlices(op) = &self.kind {
            op.release();
        }
        let old = {
            let mut saved = self.saved();
            if saved.tensors.iter().all(|t| matches!(t, Saved::None)) {
                return;
            }
            std::mem::replace(&mut *saved, SavedTensors { released: true, ..SavedTensors::default() })
        };
        drop(old);
    }

    pub(crate) fn hooks(&self) -> MutexGuard<'_, Option<Box<NodeHooks>>> {
        self.hooks.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn add_tensor_hook(&self, output: u32, id: HookId, hook: Arc<dyn TensorHook>) {
        self.hooks().get_or_insert_default().tensor.push((output, id, hook));
    }

    pub(crate) fn retain_grad(&self, output: u32, cell: Retained) {
        self.hooks().get_or_insert_default().retained.push((output, cell));
    }

    /// Registers a hook on the gradients that reach this node.
    pub fn add_pre_hook(&self, hook: Arc<dyn NodeHook>) -> HookId {
        let id = HookId::fresh();
        self.hooks().get_or_insert_default().before.push((id, hook));
        id
    }

    /// Registers a hook on the gradients that this node makes.
    pub fn add_post_hook(&self, hook: Arc<dyn NodeHook>) -> HookId {
        let id = HookId::fresh();
        self.hooks().get_or_insert_default().after.push((id, hook));
        id
    }

    /// What a front end noted with the node; what `make` gives where there was nothing.
    pub fn notes(&self, make: impl FnOnce() -> Notes) -> Notes {
        if let Some(notes) = self.hooks().as_ref().and_then(|h| h.notes.clone()) {
            return notes;
        }
        let fresh = make();
        self.hooks().get_or_insert_default().notes.get_or_insert(fresh).clone()
    }

    /// Takes a hook away.
    pub fn remove_hook(&self, id: HookId) {
        if let Some(hooks) = self.hooks().as_mut() {
            hooks.tensor.retain(|(_, i, _)| *i != id);
            hooks.before.retain(|(i, _)| *i != id);
            hooks.after.retain(|(i, _)| *i != id);
        }
    }
}

#[cold]
pub(crate) fn used_up(name: &str) -> Error {
    Error::runtime(format!(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed), at {name}: saved tensors are freed by the first backward. Specify retain_graph=True the first time if you need to."
    ))
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// What a derivative may ask of its node: saved tensors, and which gradients are wanted.
pub struct Cx<'a> {
    node: &'a Arc<Node>,
    saved: &'a SavedTensors,
}

impl<'a> Cx<'a> {
    /// Of a node with what it saved.
    pub(crate) fn of(node: &'a Arc<Node>, saved: &'a SavedTensors) -> Cx<'a> {
        Cx { node, saved }
    }
}

impl Cx<'_> {
    /// Input `i` of the operation, as it was. `RuntimeError` where it was changed in place since.
    pub fn input(&self, i: usize) -> Result<Tensor> {
        self.unpack(i)
    }

    /// Output `i` of the operation, as it was.
    pub fn output(&self, i: usize) -> Result<Tensor> {
        self.unpack(self.node.edges.len() + i)
    }

    /// Whether the gradient of input `i` is wanted.
    pub fn needs(&self, i: usize) -> bool {
        self.node.edges.get(i).is_some_and(|e| e.is_some())
    }

    /// Shape, dtype and device of input `i`, where its gradient is wanted.
    pub fn input_info(&self, i: usize) -> Option<&OutputInfo> {
        let edge = self.node.edges.get(i)?.as_ref()?;
        edge.node.outputs.get(edge.output as usize)
    }

    /// Shape, dtype and device of output `i`.
    pub fn output_info(&self, i: usize) -> &OutputInfo {
        &self.node.outputs[i]
    }

    /// How many inputs the operation had.
    pub fn inputs(&self) -> usize {
        self.node.edges.len()
    }

    fn unpack(&self, slot: usize) -> Result<Tensor> {
        match self.saved.tensors.get(slot) {
            Some(saved) => saved.unpack(self.node),
            None => Err(Error::runtime(format!("{}: nothing was saved at place {slot}", self.node.name()))),
        }
    }
}

thread_local! {
    static GRAVE: RefCell<(bool, Vec<Arc<Node>>)> = const { RefCell::new((false, Vec::new())) };
}

/// Drops a handle on a node without recursion: where it is the last one, the loop that is freeing nodes already takes it over.
pub(crate) fn bury(node: Arc<Node>) {
    if Arc::strong_count(&node) > 1 {
        return;
    }
    let mut waiting = Some(node);
    let digging = GRAVE.try_with(|g| {
        let mut g = g.borrow_mut();
        g.1.extend(waiting.take());
        std::mem::replace(&mut g.0, true)
    });
    if digging != Ok(false) {
        return;
    }
    while let Some(node) = GRAVE.with(|g| g.borrow_mut().1.pop()) {
        drop(node);
    }
    GRAVE.with(|g| g.borrow_mut().0 = false);
}

impl Drop for Node {
    fn drop(&mut self) {
        for edge in self.edges.drain(..).flatten() {
            bury(edge.node);
        }
    }
}
