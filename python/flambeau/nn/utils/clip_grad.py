"""Bounds on gradients: on the norm of all of them together, or on each element."""

import math

from ... import _C
from ..._grad_mode import no_grad
from ..._tensor import Tensor


def _list(tensors):
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of ``tensors`` together, as the norm of their norms.

    ``foreach`` is accepted; there is one way of computing it.
    """
    tensors = _list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return _C.tensor(0.0)
    total = _C._total_norm([tensor.detach() for tensor in tensors], norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients by ``max_norm / total_norm`` where that is below one."""
    grads = [param.grad for param in _list(parameters) if param.grad is not None]
    if not grads:
        return
    with no_grad():
        # Always multiplied, also by 1: no number has to be waited for.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients of ``parameters`` so that their norm together is at most ``max_norm``.

    Returns the norm that they had.
    """
    parameters = _list(parameters)
    total = get_total_norm(
        [param.grad for param in parameters if param.grad is not None], norm_type, error_if_nonfinite
    )
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of ``clip_grad_norm_``."""
    from warnings import warn

    warn("nn.utils.clip_grad_norm is now deprecated in favor of nn.utils.clip_grad_norm_.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp each element of the gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with no_grad():
        for param in _list(parameters):
            if param.grad is not None:
                param.grad.clamp_(-clip_value, clip_value)
