"""Dropouts and random activations as functions: PyTorch's signatures, and its draws.

``nn.functional`` offers them; the modules of ``nn`` keep their settings.
"""

from warnings import warn

from .. import _C


def _check(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _pick(name, inplace):
    return getattr(_C, name + "_" if inplace else name)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, L) or (C, L) with probability ``p`` and scale the rest by 1/(1-p)."""
    _check(p)
    dims = input.dim()
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. dropout1d drops channels of one spatial "
            "dimension, with or without a batch; use dropout to drop single elements."
        )
    if dims == 3:
        return _pick("feature_dropout", inplace)(input, p, training)
    return _unbatched(input, p, training, inplace)


def _unbatched(input, p, training, inplace):
    """Dropout of channels of one sample."""
    if inplace:
        return _C.feature_dropout_(input.unsqueeze_(0), p, training).squeeze_(0)
    return _C.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, H, W) with probability ``p`` and scale the rest by 1/(1-p)."""
    _check(p)
    dims = input.dim()
    if dims not in (3, 4):
        warn(
            f"dropout2d: Received a {dims}-D input to dropout2d, which is deprecated and will result in an error in a "
            "future release. Use dropout to drop single elements.",
            stacklevel=2,
        )
    elif dims == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - "
            "input is interpreted as shape (N, C, L), where C is the channel dim. Use dropout1d for it, or add a batch.",
            stacklevel=2,
        )
    return _pick("feature_dropout", inplace)(input, p, training)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) with probability ``p`` and scale the rest by 1/(1-p)."""
    _check(p)
    dims = input.dim()
    if dims not in (4, 5):
        warn(
            f"dropout3d: Received a {dims}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. Use dropout to drop single elements.",
            stacklevel=2,
        )
    if dims != 5:
        return _unbatched(input, p, training, inplace)
    return _pick("feature_dropout", inplace)(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout to SELU's lowest value that keeps mean and variance."""
    _check(p)
    return _pick("alpha_dropout", inplace)(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """``alpha_dropout`` of whole channels."""
    _check(p)
    return _pick("feature_alpha_dropout", inplace)(input, p, training)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """``x`` where positive, else times a slope: drawn between the bounds in training, else their mean."""
    return _pick("rrelu", inplace)(input, lower, upper, training)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Softmax of ``(logits + Gumbel noise) / tau``; with ``hard`` one-hot, with the gradient of the soft one."""
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -_C.empty_like(logits, memory_format=_C.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return _C.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
