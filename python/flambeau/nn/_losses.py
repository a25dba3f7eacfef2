"""Losses as functions: PyTorch's signatures on the native operations.

``nn.functional`` offers them; the modules of ``nn`` keep their settings.
"""

from warnings import warn

from .. import _C

_nn = _C._nn
_NONE, _MEAN, _SUM = 0, 1, 2
_REDUCTIONS = {"none": _NONE, "mean": _MEAN, "sum": _SUM}


def _legacy_reduction(size_average, reduce):
    """The name of the reduction that two deprecated flags mean."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=3)
    return name


def _reduction(name, size_average=None, reduce=None):
    """The number by which native losses know a reduction."""
    if size_average is not None or reduce is not None:
        name = _legacy_reduction(size_average, reduce)
    code = _REDUCTIONS.get(name)
    if code is None:
        raise ValueError(f"{name} is not a valid value for reduction: it is one of 'none', 'mean' and 'sum'")
    return code


def _reduced(loss, code, total=None):
    """``loss`` as it is, its sum, or its mean: over ``total`` where that is given, else over its elements."""
    if code == _NONE:
        return loss
    if code == _MEAN and total is None:
        return loss.mean()
    return loss.sum() if code == _SUM else loss.sum() / total


def _same_shape(name, input, target):
    """Both broadcast to one shape, with a warning where they were not of the same shape."""
    if target.shape == input.shape:
        return input, target
    warn(
        f"{name}: using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    return _C.broadcast_tensors([input, target])


def _weighted(loss, weight, name):
    """An elementwise loss times ``weight`` of the same shape."""
    if weight is None:
        return loss
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size: {name} got {weight.shape} and {loss.shape}")
    return loss * weight


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference; with ``weight`` the mean is over the weights."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("mse_loss", input, target)
    if weight is None:
        return _nn.mse_loss(input, target, code)
    return _reduced(_weighted(_nn.mse_loss(input, target, _NONE), weight, "mse_loss"), code, weight.sum())


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference; with ``weight`` the mean is over the weights."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("l1_loss", input, target)
    if weight is None:
        return _nn.l1_loss(input, target, code)
    return _reduced(_weighted(_nn.l1_loss(input, target, _NONE), weight, "l1_loss"), code, weight.sum())


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """``d^2 / (2 beta)`` where the difference ``d`` is within ``beta``, else ``|d| - beta / 2``."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("smooth_l1_loss", input, target)
    return _nn.l1_loss(input, target, code) if beta == 0.0 else _nn.smooth_l1_loss(input, target, code, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """``d^2 / 2`` where the difference ``d`` is within ``delta``, else ``delta (|d| - delta / 2)``."""
    code = _reduction(reduction)
    input, target = _same_shape("huber_loss", input, target)
    if weight is None:
        return _nn.huber_loss(input, target, code, delta)
    return _reduced(_weighted(_nn.huber_loss(input, target, _NONE, delta), weight, "huber_loss"), code)


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Cross entropy between scores of shape (C), (N, C) or (N, C, ...) and a target.

    The target holds classes, in the shape without C, or probabilities, in the shape of the input. ``weight`` is one
    factor a class; targets equal to ``ignore_index`` count for nothing; ``label_smoothing`` mixes in the uniform
    distribution. The mean is over the weights of the targets.
    """
    code = _reduction(reduction, size_average, reduce)
    return _nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability, taken from ``input``, of each target class; shapes as in ``cross_entropy``."""
    return _nn.nll_loss_nd(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy between probabilities and targets in [0, 1]; logarithms are bounded below by -100."""
    code = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is refused. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(target.shape)
    return _nn.binary_cross_entropy(input, target, weight, code)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Cross entropy between sigmoids of scores and targets in [0, 1]; ``pos_weight`` scales the positive part."""
    code = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy_with_logits: Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    return _nn.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """``target * (log(target) - input)``; 'batchmean' divides the sum by the batch, which is the divergence."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        summed = _nn.kl_div(input, target, _SUM, log_target=log_target)
        return summed / input.size(0) if input.dim() else summed
    code = _reduction(reduction, size_average, reduce)
    if code == _MEAN:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return _nn.kl_div(input, target, code, log_target=log_target)
