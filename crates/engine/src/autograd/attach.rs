//! Functions whose derivative a front end knows, attached to what they gave.

use super::node::{CustomBackward, Edge, Node, OutputInfo};
use super::saved::Saved;
use super::saved_hooks::{self, SavedHooks};
use crate::Tensor;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// A tensor that a function keeps for its derivative, with the version that it had.
#[derive(Clone)]
pub struct Kept(Saved);

impl Kept {
    /// An input, or any other tensor.
    pub fn input(t: &Tensor) -> Result<Kept> {
        Kept(Saved::input(t)).packed()
    }

    /// Output `i` of the function itself: kept without its history, which would own the function's node.
    pub fn output(t: &Tensor, i: usize) -> Result<Kept> {
        Kept(Saved::output(t, i)).packed()
    }

    /// Through the hooks of [`super::push_saved_hooks`], where there are some.
    fn packed(mut self) -> Result<Kept> {
        if saved_hooks::active() {
            saved_hooks::pack_all(std::slice::from_mut(&mut self.0), 0)?;
        }
        Ok(self)
    }

    /// Puts hooks on it. `RuntimeError` where it has some.
    pub fn hooked(&self, hooks: &dyn SavedHooks) -> Result<Kept> {
        saved_hooks::hooked(Some(self.0.clone()), hooks).map(Kept)
    }

    /// The tensor. `RuntimeError` where it was changed in place since.
    pub fn unpack(&self, node: &Arc<Node>) -> Result<Tensor> {
        self.0.unpack(node)
    }

    /// The address of the tensor's memory, and how many bytes of it the tensor is.
    pub fn memory(&self) -> Option<(usize, usize)> {
        self.0.memory()
    }

    pub(super) fn saved(&self) -> &Saved {
        &self.0
    }
}

/// What a function said about one of its outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// A new tensor.
    Fresh,
    /// An argument, handed on as it is: it becomes a tensor of its own.
    Input,
    /// An argument that was changed in place: its history goes on with the function.
    Dirty,
    /// Without a gradient.
    NonDifferentiable,
}

/// Records a call of a function on `inputs` (`None` for arguments that are no tensors) that gave `outputs`.
///
/// Gives the node and the outputs, some of which may be other tensors than before.
pub fn attach(op: Box<dyn CustomBackward>, inputs: &[Option<&Tensor>], outputs: &[(Tensor, Output)]) -> Result<(Arc<Node>, Vec<Tensor>)> {
    let edges: SmallVec<[Option<Edge>; 2]> = inputs.iter().map(|t| t.and_then(|t| t.gradient_edge())).collect();
    let name = op.name();
    for (t, _) in outputs.iter().filter(|(_, how)| *how == Output::Dirty) {
        super::inplace::check(&name, t, true)?;
        if t.base().is_some() && outputs.len() > 1 {
            return Err(Error::runtime(format!("{name}: a view that was changed in place must be the function's only output")));
        }
    }
    let base_edge = outputs.iter().find(|(_, how)| *how == Output::Dirty).and_then(|(t, _)| t.base()).and_then(|b| b.gradient_edge());
    let node = Node::custom(op, edges, outputs.iter().map(|(t, _)| OutputInfo::of(t)).collect());
    let mut made = Vec::with_capacity(outputs.len());
    for (i, (t, how)) in outputs.iter().enumerate() {
        let edge = Edge { node: node.clone(), output: i as u32 };
        made.push(match how {
            Output::NonDifferentiable => t.clone(),
            _ if !t.dtype().is_differentiable() => t.clone(),
            Output::Dirty => {
                t.bump_version();
                super::inplace::rebase(t, node.clone(), base_edge.clone())?;
                t.clone()
            }
            Output::Input => with_history(t.alias(), edge),
            // A view made inside the function has a base that knows nothing of the function.
            Output::Fresh if t.base().is_some() => with_history(t.alias(), edge),
            Output::Fresh => with_history(t.clone(), edge),
        });
    }
    Ok((node, made))
}

fn with_history(t: Tensor, edge: Edge) -> Tensor {
    t.set_history(Some(edge));
    t
}
