//! Running a node with the hooks around it.

use super::meta::lock;
use super::node::{Grads, Node};
use crate::Tensor;
use flambeau_base::Result;
use std::sync::Arc;

/// Hooks on the tensors that a node made, and retained gradients: what they give is what the node gets.
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
    let (tensor, before, retained) = match node.hooks().as_ref() {
        Some(h) => (h.tensor.clone(), h.before.clone(), h.retained.clone()),
        None => return Ok(()),
    };
    for (output, _, hook) in tensor {
        apply(&mut grads[output as usize], |g| hook.call(g))?;
    }
    for (_, hook) in before {
        if let Some(new) = hook.call(grads, &Grads::new())? {
            *grads = new;
        }
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

/// Runs the node, then the hooks on what it made.
pub(crate) fn around(node: &Arc<Node>, grads: Grads) -> Result<Grads> {
    let after = match node.hooks().as_ref() {
        Some(h) if !h.after.is_empty() => h.after.clone(),
        _ => Vec::new(),
    };
    let given = if after.is_empty() { Grads::new() } else { grads.clone() };
    let mut made = node.apply(grads)?;
    for (_, hook) in after {
        if let Some(new) = hook.call(&given, &made)? {
            made = new;
        }
    }
    Ok(made)
}
