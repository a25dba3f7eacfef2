//! Running a node with the hooks around it.

use super::meta::lock;
use super::node::{Grads, Node};
use crate::Tensor;
use flambeau_base::Result;
use std::sync::Arc;

/// Hooks on the tensors that a node made, and retained gradients: what hooks give is what is retained, captured and used.
pub(crate) fn before(node: &Arc<Node>, grads: &mut Grads) -> Result<()> {
    if let Some(leaf) = node.variable() {
        let hooks = leaf.autograd().as_ref().and_then(|m| m.hooks.as_ref()).map(|h| h.tensor.clone());
        for (_, hook) in hooks.unwrap_or_default() {
            apply(&mut grads[0], |g| hook.call(g))?;
        }
    }
    if node.hooks().is_none() {
        return Ok(());
    }
    let (tensor, retained) = match node.hooks().as_ref() {
        Some(h) => (h.tensor.clone(), h.retained.clone()),
        None => return Ok(()),
    };
    for (output, _, hook) in tensor {
        apply(&mut grads[output as usize], |g| hook.call(g))?;
    }
    for (output, cell) in retained {
        if let Some(grad) = &grads[output as usize] {
            let old = lock(&cell).take();
            let total = match &old {
                Some(old) => old.add(grad)?,
                None => grad.clone(),
            };
            *lock(&cell) = Some(total);
        }
    }
    Ok(())
}

fn apply(grad: &mut Option<Tensor>, hook: impl FnOnce(&Tensor) -> Result<Option<Tensor>>) -> Result<()> {
    if let Some(g) = grad
        && let Some(new) = hook(g)?
    {
        *grad = Some(new);
    }
    Ok(())
}

/// Runs the hooks on what goes into the node, the node, and the hooks on what it made.
pub(crate) fn around(node: &Arc<Node>, mut grads: Grads) -> Result<Grads> {
    let (before, after) = match node.hooks().as_ref() {
        Some(h) => (h.before.clone(), h.after.clone()),
        None => (Vec::new(), Vec::new()),
    };
    for (_, hook) in before {
        if let Some(new) = hook.call(&grads, &Grads::new())? {
            grads = new;
        }
    }
    let given = if after.is_empty() { Grads::new() } else { grads.clone() };
    let mut made = node.apply(grads)?;
    for (_, hook) in after {
        if let Some(new) = hook.call(&given, &made)? {
            made = new;
        }
    }
    Ok(made)
}
