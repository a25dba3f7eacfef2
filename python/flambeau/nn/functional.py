"""Functions of layers and losses: PyTorch's signatures on the native operations.

What the native module offers under the same signature is taken from it as it is; the rest adds what only Python
callers have: ``inplace``, names of reductions, a dimension that is guessed, deprecated arguments.
"""

from .. import _C

_nn = _C._nn

# Native operations whose signature is already PyTorch's.
_NATIVE = (
    "linear", "bilinear", "gelu", "softplus", "logsigmoid", "one_hot", "scaled_dot_product_attention",
    "cosine_similarity", "layer_norm", "relu_", "leaky_relu_", "elu_", "hardtanh_",
)  # fmt: skip

for _name in _NATIVE:
    _found = getattr(_nn, _name, None) or getattr(_C, _name, None)
    if _found is not None:
        globals()[_name] = _found
del _name, _found

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'nn.functional.{name}' yet")


def _native(name):
    """The native operation called ``name``, wherever the native module keeps it."""
    found = getattr(_nn, name, None) or getattr(_C, name, None)
    if found is None:
        raise NotImplementedError(f"flambeau has no native operation '{name}' yet")
    return found


# ---- activations


def _pick(name, inplace):
    return _native(name + "_") if inplace else _native(name)


def relu(input, inplace=False):
    """``max(x, 0)``."""
    return _C.relu_(input) if inplace else _C.relu(input)


def relu6(input, inplace=False):
    """``x`` clamped to [0, 6]."""
    return _pick("hardtanh", inplace)(input, 0.0, 6.0)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """``x`` clamped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} cannot be greater than max_val {max_val}")
    return _pick("hardtanh", inplace)(input, min_val, max_val)


def silu(input, inplace=False):
    """``x * sigmoid(x)``."""
    return _pick("silu", inplace)(input)


def mish(input, inplace=False):
    """``x * tanh(softplus(x))``."""
    return _pick("mish", inplace)(input)


# Source: Klambauer and others, "Self-normalizing neural networks", 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def selu(input, inplace=False):
    """Self-normalising ELU: ``scale * elu(x, alpha)`` with the two constants of its paper."""
    return _pick("elu", inplace)(input, _SELU_ALPHA, _SELU_SCALE)


def hardsigmoid(input, inplace=False):
    """``relu6(x + 3) / 6``."""
    return _pick("hardsigmoid", inplace)(input)


def hardswish(input, inplace=False):
    """``x * relu6(x + 3) / 6``."""
    return _pick("hardswish", inplace)(input)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """``x`` where positive, else ``negative_slope * x``."""
    return _pick("leaky_relu", inplace)(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    return _pick("elu", inplace)(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _pick("elu", inplace)(input, alpha, 1.0, 1.0 / alpha)


def threshold(input, threshold, value, inplace=False):
    """``x`` where it exceeds ``threshold``, else ``value``."""
    below = input <= threshold
    return input.masked_fill_(below, value) if inplace else input.masked_fill(below, value)


def hardshrink(input, lambd=0.5):
    """``x`` where its magnitude exceeds ``lambd``, else zero."""
    return input.masked_fill((input >= -lambd) & (input <= lambd), 0)


def softshrink(input, lambd=0.5):
    """``x`` moved towards zero by ``lambd``, and zero within it."""
    if not lambd >= 0:
        raise RuntimeError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}")
    inside = (input >= -lambd) & (input <= lambd)
    return _C.where(input > 0, input - lambd, input + lambd).masked_fill(inside, 0)


def prelu(input, weight):
    """``x`` where positive, else ``weight * x``, one weight or one for each channel (dimension 1)."""
    if weight.numel() != 1:
        channels = input.size(1) if input.dim() > 1 else 1
        if weight.dim() != 1 or weight.numel() != channels:
            raise RuntimeError(
                f"prelu: mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()}, and channel size = {channels}."
            )
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(input.dim())])
    elif weight.dim() != 0:
        weight = weight.reshape([1] * input.dim())
    return _C.where(input > 0, input, weight * input)


def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input):
    """``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def softsign(input):
    """``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """``x - tanh(x)``."""
    return input - input.tanh()


def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input.size(dim) % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.size(dim)}")
    kept, gate = input.chunk(2, dim)
    return kept * gate.sigmoid()


# ---- along a dimension


def _guess_dim(name, dims, stacklevel):
    """The dimension that old programs meant by leaving it out."""
    from warnings import warn

    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if dims in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """``exp(x) / sum(exp(x))`` along ``dim``; ``dtype`` converts first."""
    if dim is None:
        dim = _guess_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Softmax of ``-input``."""
    if dim is None:
        dim = _guess_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax along ``dim``, computed stably; ``dtype`` converts first."""
    if dim is None:
        dim = _guess_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """``input`` divided by its p-norm along ``dim``, or by ``eps`` where the norm is smaller."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else _C.div(input, norm, out=out)


# ---- dropout and look-up


def dropout(input, p=0.5, training=True, inplace=False):
    """In training, zero with probability ``p`` and scale the rest by 1/(1-p)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _C.dropout_(input, p, training) if inplace else _C.dropout(input, p, training)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of ``weight`` by the numbers in ``input``.

    The row ``padding_idx`` gets no gradient. With ``max_norm`` the rows looked up are first rescaled in place.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings: {padding_idx} is no row of {rows}")
        padding_idx %= rows
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    if sparse:
        raise NotImplementedError("embedding with sparse=True: flambeau has no sparse gradients yet")
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _renorm_rows(weight, index, max_norm, norm_type):
    """Scale the rows of ``weight`` named by ``index`` down to a norm of at most ``max_norm``, in place."""
    table = weight.detach()
    rows = index.reshape(-1).unique()
    picked = table.index_select(0, rows)
    norm = picked.norm(norm_type, 1, keepdim=True)
    scaled = _C.where(norm > max_norm, picked * (max_norm / (norm + 1e-7)), picked)
    table.index_copy_(0, rows, scaled)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``input`` over its root mean square along the last dimensions, times ``weight``."""
    return _native("rms_norm")(input, normalized_shape, weight, eps)


# ---- losses


def _legacy_reduction(size_average, reduce):
    """The name of the reduction that two deprecated flags mean."""
    from warnings import warn

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


def _same_shape(name, input, target):
    """Both broadcast to one shape, with a warning where they were not of the same shape."""
    if target.shape == input.shape:
        return input, target
    from warnings import warn

    warn(
        f"{name}: using a target size ({target.shape}) that is different to the input size ({input.shape}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    return _C.broadcast_tensors(input, target)


def _weighted(loss, weight, name, reduction):
    """An elementwise loss times ``weight``, not reduced or reduced."""
    if weight.shape != loss.shape:
        raise ValueError(f"Weights and input must have the same size: {name} got {weight.shape} and {loss.shape}")
    loss = loss * weight
    return loss if reduction == 0 else loss.sum() if reduction == 2 else loss.mean()


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The squared difference."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("mse_loss", input, target)
    if weight is not None:
        loss = _weighted(_nn.mse_loss(input, target, 0), weight, "mse_loss", 2 * bool(code))
        return loss / weight.sum() if code == 1 else loss
    return _nn.mse_loss(input, target, code)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The absolute difference."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("l1_loss", input, target)
    if weight is not None:
        loss = _weighted(_nn.l1_loss(input, target, 0), weight, "l1_loss", 2 * bool(code))
        return loss / weight.sum() if code == 1 else loss
    return _nn.l1_loss(input, target, code)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Quadratic within ``beta``, linear outside."""
    code = _reduction(reduction, size_average, reduce)
    input, target = _same_shape("smooth_l1_loss", input, target)
    return _nn.l1_loss(input, target, code) if beta == 0.0 else _nn.smooth_l1_loss(input, target, code, beta)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Quadratic within ``delta``, linear with slope ``delta`` outside."""
    code = _reduction(reduction)
    input, target = _same_shape("huber_loss", input, target)
    if weight is not None:
        return _weighted(_nn.huber_loss(input, target, 0, delta), weight, "huber_loss", code)
    return _nn.huber_loss(input, target, code, delta)


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
    label_smoothing=0.0,
):  # fmt: skip
    """Cross entropy between scores of shape (C), (N, C) or (N, C, ...) and a target.

    The target holds classes, in the shape without C, or probabilities, in the shape of the input. ``weight`` is one
    factor a class; targets equal to ``ignore_index`` count for nothing; ``label_smoothing`` mixes in the uniform
    distribution. The mean is over the weights of the targets.
    """
    return _nn.cross_entropy_loss(
        input, target, weight, _reduction(reduction, size_average, reduce), ignore_index, label_smoothing
    )


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability, taken from ``input``, of each target class."""
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
    return _native("binary_cross_entropy_with_logits")(input, target, weight, pos_weight, code)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """``target * (log(target) - input)``; 'batchmean' divides the sum by the batch, which is the divergence."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        summed = _native("kl_div")(input, target, 2, log_target=log_target)
        return summed / input.size(0) if input.dim() else summed
    code = _reduction(reduction, size_average, reduce)
    if code == 1:
        from warnings import warn

        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return _native("kl_div")(input, target, code, log_target=log_target)
