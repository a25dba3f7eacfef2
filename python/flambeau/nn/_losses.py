"""Losses as functions: PyTorch's signatures on the native operations.

``nn.functional`` offers them; the modules of ``nn`` keep their settings.
"""

from math import log, pi, prod
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


def _hinge(x):
    return x.clamp_min(0)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1, of the angle between two vectors."""
    return _C.cosine_embedding_loss(input1, input2, target, margin, _reduction(reduction, size_average, reduce))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    return _C.hinge_embedding_loss(input, target, margin, _reduction(reduction, size_average, reduce))


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``."""
    code = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _C.margin_ranking_loss(input1, input2, target, margin, code)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``log(1 + exp(-target * input))``, computed stably."""
    return _nn.soft_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multi_margin_loss(
    input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """``sum over i != y of max(0, margin - x[y] + x[i])^p / classes`` for each row x with class y, times the weight of y."""
    code = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got shape {weight.shape}")
    return _nn.multi_margin_loss(input, target, p, margin, weight, code)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``sum over targets y and others i of max(0, 1 - x[y] + x[i]) / classes``; a row's targets stand before the first -1."""
    return _nn.multilabel_margin_loss(input, target, _reduction(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy between sigmoids of scores and targets, as the mean over the classes (the last dimension)."""
    if size_average is not None or reduce is not None:
        reduction = _legacy_reduction(size_average, reduce)
    loss = -(target * _nn.logsigmoid(input) + (1 - target) * _nn.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid: it is one of 'none', 'mean' and 'sum'")
    return _reduced(loss, _REDUCTIONS[reduction])


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean"
):
    """Negative log-likelihood of counts under rates, or their logarithms; ``full`` adds Stirling's term for targets above 1."""
    code = _reduction(reduction, size_average, reduce)
    return _C.poisson_nll_loss(input, target, log_input, full, eps, code)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction="mean"):
    """``(log(var) + (input - target)^2 / var) / 2``, the variance at least ``eps``; ``full`` adds ``log(2 pi) / 2``."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError(f"var has negative entry/entries: {var}")
        var = var * _C.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        unequal = [n for m, n in zip(input.shape, var.shape) if m != n]
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(unequal) != 1:
            raise ValueError(f"var is of incorrect size: {var.size()} for an input of size {input.size()}")
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid: it is one of 'none', 'mean' and 'sum'")
    # The bound is not differentiated.
    low = var.detach() < eps
    var = _C.where(low, var - var.detach() + eps, var)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * log(2 * pi)
    return _reduced(loss, _REDUCTIONS[reduction])


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-06,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """``max(0, margin + |anchor - positive| - |anchor - negative|)`` with the norm of order ``p``.

    With ``swap`` the smaller of the distances of anchor and positive to the negative counts.
    """
    code = _reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _C.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """``triplet_margin_loss`` with any distance: a function of two tensors."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction: it is one of 'none', 'mean' and 'sum'")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = _C.pairwise_distance if distance_function is None else distance_function
    near, apart = distance(anchor, positive), distance(anchor, negative)
    if swap:
        apart = _C.minimum(apart, distance(positive, negative))
    return _reduced(_hinge(margin + near - apart), _REDUCTIONS[reduction])


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Connectionist temporal classification: minus the log-probability that ``log_probs`` give to ``targets``.

    ``log_probs`` has the shape (time, batch, classes) or (time, classes); ``targets`` (batch, longest), or one after the
    other in one dimension. The mean is over losses divided by the lengths of their targets.
    """
    return _C.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity
    )


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """``cross_entropy`` of the scores ``linear(input, linear_weight, linear_bias)``.

    ``input`` is (features) or (N, features); ``linear_weight`` (classes, ..., features), where dimensions between make a
    loss of several dimensions. ``options`` say how PyTorch cuts the batch, which changes no result.
    """
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *outputs)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rows = linear_weight.reshape(prod(outputs), input.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(prod(outputs))
    return cross_entropy(
        _nn.linear(input, rows, bias).reshape(shape),
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )
