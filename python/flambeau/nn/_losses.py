"""Losses as functions. ``nn.functional`` offers them; the modules of ``nn`` keep their settings.

Cross entropy is a native operation; the others are tensor operations, so that their derivatives follow.
"""

from warnings import warn

from .. import _C
from ..autograd.function import Function

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
    return _C.broadcast_tensors(input, target)


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
    loss = _weighted((input - target).square(), weight, "mse_loss")
    return _reduced(loss, code, None if weight is None else weight.sum())


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference; with ``weight`` the mean is over the weights."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("l1_loss", input, target)
    loss = _weighted((input - target).abs(), weight, "l1_loss")
    return _reduced(loss, code, None if weight is None else weight.sum())


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """``d^2 / (2 beta)`` where the difference ``d`` is within ``beta``, else ``|d| - beta / 2``."""
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("smooth_l1_loss", input, target)
    distance = (input - target).abs()
    if beta == 0:
        return _reduced(distance, code)
    return _reduced(_C.where(distance < beta, distance.square() * (0.5 / beta), distance - 0.5 * beta), code)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """``d^2 / 2`` where the difference ``d`` is within ``delta``, else ``delta (|d| - delta / 2)``."""
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got {delta}")
    code = _reduction(reduction)
    input, target = _same_shape("huber_loss", input, target)
    distance = (input - target).abs()
    loss = _C.where(distance < delta, distance.square() * 0.5, (distance - 0.5 * delta) * delta)
    return _reduced(_weighted(loss, weight, "huber_loss"), code)


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
    return _C._nn.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability, taken from ``input``, of each target class; shapes as in ``cross_entropy``."""
    code = _reduction(reduction, size_average, reduce)
    classes = 0 if input.dim() == 1 else 1
    expected = input.shape[:classes] + input.shape[classes + 1 :]
    if input.dim() == 0 or target.shape != expected:
        raise ValueError(
            f"nll_loss: Expected target size {tuple(expected)} for an input of shape {input.shape}, got {target.shape}"
        )
    if weight is not None and weight.shape != (input.size(classes),):
        raise RuntimeError(
            f"nll_loss: weight tensor should be defined either for all {input.size(classes)} classes or no classes but "
            f"got weight tensor of shape: {weight.shape}"
        )
    if target.dtype not in (_C.int64, _C.uint8):
        raise RuntimeError(f"nll_loss: expected target dtype to be Long or Byte, but got {target.dtype}")
    ignored = target == ignore_index
    target = target.long().masked_fill(ignored, 0)
    outside = (target < 0) | (target >= input.size(classes))
    if bool(outside.any()):
        raise IndexError(
            f"nll_loss: Target {target[outside][0].item()} is out of bounds for {input.size(classes)} classes."
        )
    loss = -input.gather(classes, target.unsqueeze(classes)).squeeze(classes)
    share = _C.ones_like(loss, requires_grad=False) if weight is None else weight[target]
    share = share.masked_fill(ignored, 0)
    return _reduced((loss * share).masked_fill(ignored, 0), code, share.sum())


class _BinaryCrossEntropy(Function):
    """Cross entropy of probabilities, with logarithms bounded below and a derivative bounded near 0 and 1."""

    @staticmethod
    def forward(ctx, input, target):
        ctx.save_for_backward(input, target)
        if bool(((input < 0) | (input > 1)).any()):
            raise RuntimeError("binary_cross_entropy: all elements of input should be between 0 and 1")
        return (target - 1) * (-input).log1p().clamp(min=-100) - target * input.log().clamp(min=-100)

    @staticmethod
    def backward(ctx, grad):
        input, target = ctx.saved_tensors
        to_input = grad * (input - target) / (input * (1 - input)).clamp(min=1e-12)
        to_target = grad * ((-input).log1p() - input.log()) if ctx.needs_input_grad[1] else None
        return to_input, to_target


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy between probabilities and targets in [0, 1]; logarithms are bounded below by -100."""
    code = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is refused. Please ensure they have the same size."
        )
    loss = _BinaryCrossEntropy.apply(input, target)
    return _reduced(loss if weight is None else loss * weight.expand(target.shape), code)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Cross entropy between sigmoids of scores and targets in [0, 1]; ``pos_weight`` scales the positive part."""
    code = _reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy_with_logits: Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    log_probability = _C._nn.logsigmoid(input)
    if pos_weight is not None:
        log_probability = log_probability * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - log_probability
    return _reduced(loss if weight is None else loss * weight, code)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """``target * (log(target) - input)``; 'batchmean' divides the sum by the batch, which is the divergence."""
    batch = reduction == "batchmean" and size_average is None and reduce is None
    code = _SUM if batch else _reduction(reduction, size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 0 log 0 is 0, and its derivative must not be infinite times zero.
        logarithm = _C.where(target != 0, target, _C.ones_like(target)).log()
        loss = target * logarithm - target * input
    if code == _MEAN:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    summed = _reduced(loss, code)
    return summed / input.size(0) if batch and input.dim() else summed
