//! Adding to the gradient of a leaf.

use super::mode;
use crate::Tensor;
use flambeau_base::Result;

/// Adds `grad` to `leaf.grad`, then runs the hooks that wait for it.
///
/// A gradient that nobody else holds is taken as it is; afterwards sums are made in place, unless
/// they are themselves to be differentiated.
pub(crate) fn accumulate(leaf: &Tensor, grad: Tensor) -> Result<()> {
    let recording = mode::is_grad_enabled();
    let grad = grad.resolved()?;
    let total = match leaf.grad() {
        None if recording => grad,
        None => settle(leaf, grad)?,
        Some(old) if recording => old.add(&grad)?,
        Some(old) => {
            old.add_(&grad)?;
            old
        }
    };
    leaf.set_grad(Some(total));
    let hooks = leaf.autograd().as_ref().and_then(|m| m.hooks.as_ref()).map(|h| h.accumulated.clone());
    for (_, hook) in hooks.unwrap_or_default() {
        hook.call(leaf)?;
    }
    Ok(())
}

/// The gradient as the leaf keeps it: its own memory, laid out like the leaf where that is dense.
fn settle(leaf: &Tensor, grad: Tensor) -> Result<Tensor> {
    let want = leaf.layout();
    let alike = grad.strides() == want.strides() || (grad.layout().is_contiguous() && want.is_contiguous());
    let own = grad.is_unique() && grad.storage().holders() == 1 && !grad.layout().has_overlap();
    if own && (alike || !want.is_non_overlapping_and_dense()) {
        return Ok(if grad.requires_grad() { grad.alias() } else { grad });
    }
    let layout =
        if want.is_non_overlapping_and_dense() { want.clone().with_offset(0) } else { flambeau_base::Layout::contiguous(want.sizes())? };
    let copy = Tensor::empty_layout(layout, grad.dtype(), grad.device())?;
    copy.copy_(&grad)?;
    Ok(copy)
}
