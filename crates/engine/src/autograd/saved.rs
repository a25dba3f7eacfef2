//! Tensors that a node keeps for its derivative.

use super::node::{Edge, Node};
use super::saved_hooks::PackedTensor;
use crate::Tensor;
use flambeau_base::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// A saved tensor.
#[derive(Clone)]
pub(crate) enum Saved {
    /// Nothing was saved in this place.
    None,
    /// An input (or any tensor with a history of its own) and its version then.
    Tensor(Tensor, u32),
    /// An output of the node itself. It is kept without its history, which would own the node; the history is put back when it is asked for.
    Output(Tensor, u32, u32),
    /// What hooks made of it, see [`super::saved_hooks`].
    Packed(Arc<PackedTensor>),
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
            Saved::Packed(packed) => return packed.unpack(node),
            Saved::Tensor(t, v) | Saved::Output(t, v, _) => (t, *v),
        };
        if tensor.version() != version {
            return Err(changed(self, tensor, version, node));
        }
        match self {
            Saved::Output(t, _, index) if super::mode::is_grad_enabled() && t.dtype().is_differentiable() => {
                let out = t.alias();
                if let Some(tangent) = t.tangent() {
                    out.set_tangent(Some(tangent))?;
                }
                out.set_history(Some(Edge { node: node.clone(), output: *index }));
                Ok(out)
            }
            _ => Ok(tensor.clone()),
        }
    }
}

#[cold]
fn changed(saved: &Saved, t: &Tensor, version: u32, node: &Arc<Node>) -> Error {
    let maker = match saved {
        Saved::Output(_, _, index) => Some((node.clone(), *index)),
        _ => t.grad_fn_as_it_is().map(|e| (e.node, e.output)),
    };
    let origin = maker.map_or(String::new(), |(node, index)| format!(", which is output {index} of {},", node.name()));
    let hint = match super::anomaly::changed_by(t, version) {
        Some(text) => text,
        None if super::anomaly::is_anomaly() => {
            "Hint: the backtrace above shows the operation that failed to compute its gradient; the variable was changed there or later.".into()
        }
        None => {
            "Hint: enable anomaly detection to find the operation that failed to compute its gradient and what changed the variable, with torch.autograd.set_detect_anomaly(True, check_nan=False); or clone() the variable before the in-place operation.".into()
        }
    };
    Error::runtime(format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [{} {:?}]{origin} saved for {}, is at version {}; expected version {version} instead. {hint}",
        t.dtype(),
        t.shape(),
        node.name(),
        t.version()
    ))
}
