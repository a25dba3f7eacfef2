"""Functions of layers and losses: PyTorch's signatures on the native operations.

What the native module offers under the same signature is taken from it as it is; the rest adds what only Python
callers have: ``inplace``, names of reductions, a dimension that is guessed, deprecated arguments.
"""

from .. import _C
from ._attention import multi_head_attention_forward  # noqa: F401
from ._dropout import (  # noqa: F401
    alpha_dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
)
from ._losses import (  # noqa: F401
    _legacy_reduction,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    linear_cross_entropy,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._masks import _canonical_mask, _none_or_dtype  # noqa: F401
from ._pooling import (  # noqa: F401
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._resampling import (  # noqa: F401
    affine_grid,
    embedding_bag,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

from ._scaled import (  # noqa: F401
    ScalingType,
    SwizzleType,
    grouped_mm,
    scaled_addmm,
    scaled_addmm_,
    scaled_grouped_mm,
    scaled_mm,
)

_nn = _C._nn

DType = int  # as annotations name it
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
# What PyTorch's texts are made of; flambeau's are written out.
reproducibility_notes, sparse_support_notes, tf32_notes = {}, {}, {}
# Names that programs import from here, and where they are at home.
_ELSEWHERE = {
    "_jit_internal": "BroadcastingList1 BroadcastingList2 BroadcastingList3 boolean_dispatch",
    "overrides": "handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic",
    "_tensor": "Tensor",
}

# Native operations whose signature is already PyTorch's.
_NATIVE = (
    "local_response_norm", "pairwise_distance", "pdist", "linear", "softplus", "logsigmoid", "one_hot", "scaled_dot_product_attention",
    "cosine_similarity", "layer_norm", "softshrink", "hardshrink", "prelu", "rrelu_", "relu_", "leaky_relu_", "elu_", "hardtanh_",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc",
    "pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d",
)  # fmt: skip

for _name in _NATIVE:
    _found = getattr(_nn, _name, None) or getattr(_C, _name, None)
    if _found is not None:
        globals()[_name] = _found
del _name, _found

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def assert_int_or_pair(arg, arg_name, message):
    """Refuse what is neither a number nor two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def __getattr__(name):
    for place, names in _ELSEWHERE.items():
        if name in names.split():
            from importlib import import_module

            made = globals()[name] = getattr(import_module(".." + place, __package__), name)
            return made
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


def gelu(input, approximate="none", out=None):
    """``x`` times the probability that a standard normal is below it. Source: Hendrycks and Gimpel, 2016."""
    return _nn.gelu(input, approximate=approximate, **({} if out is None else {"out": out}))


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


def celu_(input, alpha=1.0):
    """``celu`` in place."""
    return celu(input, alpha, inplace=True)


def selu_(input):
    """``selu`` in place."""
    return selu(input, inplace=True)


def threshold_(input, threshold, value):
    """``threshold`` in place."""
    return input.masked_fill_(input <= threshold, value)


def threshold(input, threshold, value, inplace=False):
    """``x`` where it exceeds ``threshold``, else ``value``."""
    return _pick("threshold", inplace)(input, threshold, value)


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
    norm = input.norm(p, dim, keepdim=True)
    if norm.is_floating_point():
        # Not to be rounded to zero: float16 has nothing between 0 and 6e-8.
        info = _C.finfo(norm.dtype)
        eps = max(eps, info.tiny * info.eps)
    norm = norm.clamp_min(eps).expand_as(input)
    return input / norm if out is None else _C.div(input, norm, out=out)


def bilinear(input1, input2, weight, bias=None):
    """``x1^T W_k x2 + b_k`` for each matrix of ``weight``, of shape (outputs, features 1, features 2)."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {input1.shape} and {input2.shape}, which must agree "
            "in all but the last"
        )
    if input1.size(-1) != weight.size(1) or input2.size(-1) != weight.size(2):
        raise RuntimeError(
            f"bilinear(): input sizes {input1.size(-1)} and {input2.size(-1)} do not match weight of shape {weight.shape}"
        )
    rows = (input1.unsqueeze(-2).unsqueeze(-2) @ weight).squeeze(-2)
    out = (rows * input2.unsqueeze(-2)).sum(-1, dtype=rows.dtype)
    return out if bias is None else out + bias


# ---- dropout and look-up


def dropout(input, p=0.5, training=True, inplace=False):
    """In training, zero with probability ``p`` and scale the rest by 1/(1-p)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _C.dropout_(input, p, training) if inplace else _C.dropout(input, p, training)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of ``weight`` by the numbers in ``input``.

    The row ``padding_idx`` gets no gradient. With ``max_norm`` the rows looked up are first rescaled in place.
    Gradients are dense, also with ``sparse``.
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
    return _C.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _renorm_rows(weight, index, max_norm, norm_type):
    """Scale the rows of ``weight`` named by ``index`` down to a norm of at most ``max_norm``, in place."""
    table = weight.detach()
    rows = _C.tensor(sorted(set(index.reshape(-1).tolist())), dtype=_C.int64)
    picked = table.index_select(0, rows)
    norm = picked.norm(norm_type, 1, keepdim=True)
    scaled = _C.where(norm > max_norm, picked * (max_norm / (norm + 1e-7)), picked)
    table.index_copy_(0, rows, scaled)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``input`` over its root mean square along the last dimensions, times ``weight``."""
    return _native("rms_norm")(input, normalized_shape, weight, eps)


# ---- normalisation by channels


def _several(size):
    """``ValueError`` where statistics would be those of one value."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05
):
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` for each channel (dimension 1).

    In training the statistics are those of the batch, and the running ones, where given, are moved towards them by
    ``momentum``; else they are the running ones.
    """
    if training:
        _several(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _C.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05
):
    """``batch_norm`` of each member of the batch by itself."""
    if use_input_stats:
        count = 1
        for n in input.shape[2:]:
            count *= n
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    return _C.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Layer norm over groups of channels (dimension 1) and what is behind them; a weight and a bias for each channel."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _several([input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]])
    return _C.group_norm(input, num_groups, weight, bias, eps, False)


# ---- windows of images


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images ``[batch, channels, height, width]`` as columns ``[batch, channels * kernel, windows]``."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns ``[batch, channels * kernel, windows]`` added up to images: what ``unfold`` took apart, windows that overlap as sums."""
    return _nn.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def _pair(value):
    """A number for both dimensions."""
    return value if isinstance(value, (tuple, list)) else (value, value)
