//! Tensors that a node keeps for its derivative.

use super::node::{Edge, Node};
use crate::Tensor;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// A saved tensor. An enum from the start: `compile` will add a recipe that makes the tensor when it is asked for.
#[derive(Clone)]
pub(crate) enum Saved {
    /// Nothing was saved in this place.
    None,
    /// An input (or any tensor with a history of its own) and its version then.
    Tensor(Tensor, u32),
    /// An output of the node itself. It is kept without its history, which would own the node; the history is put back when it is asked for.
    Output(Tensor, u32, u32),
}

#[derive(Clone, Default)]
pub(crate) struct SavedTensors {
    /// Inputs first, then outputs.
    pub tensors: SmallVec<[Saved; 3]>,
    pub released: bool,
}

impl Saved {
    pub fn input(t: &Tensor) -> Saved {
        Saved::Tensor(t.clone(), t.version())
    }

    pub fn output(t: &Tensor, index: usize) -> Saved {
        Saved::Output(t.alias(), t.version(), index as u32)
    }

    /// The tensor, if it is still what it was.
    pub fn unpack(&self, node: &Arc<Node>) -> Result<Tensor> {
        let (tensor, version) = match self {
            Saved::None => return Err(Error::runtime(format!("{}: a tensor that was not saved was asked for", node.name()))),
            Saved::Tensor(t, v) | Saved::Output(t, v, _) => (t, *v),
        };
        if tensor.version() != version {
            return Err(changed(tensor, version, node));
        }
        match self {
            Saved::Output(t, _, index) if super::mode::is_grad_enabled() && t.dtype().is_differentiable() => {
                let out = t.alias();
                out.set_history(Some(Edge { node: node.clone(), output: *index }));
                Ok(out)
            }
            _ => Ok(tensor.clone()),
        }
    }
}

#[cold]
fn changed(t: &Tensor, version: u32, node: &Arc<Node>) -> Error {
    Error::runtime(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: {} of shape {:?}, needed by {}, is at version {}; expected version {version} instead. Hint: clone() it before the in-place operation, or use the operation that makes a new tensor.",
        t.dtype(),
        t.shape(),
        node.name(),
        t.version()
    ))
}
