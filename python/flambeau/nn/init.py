"""First values of parameters. Each function fills its tensor in place, without a gradient, and returns it."""

import math

from .._grad_mode import no_grad

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_",
]  # fmt: skip

_GAINS = {
    "linear": 1, "conv1d": 1, "conv2d": 1, "conv3d": 1, "conv_transpose1d": 1, "conv_transpose2d": 1,
    "conv_transpose3d": 1, "sigmoid": 1, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def __getattr__(name):
    """The names without an underscore at the end, which PyTorch has given up, and still has."""
    if name + "_" not in __all__:
        raise AttributeError(f"flambeau has no 'nn.init.{name}' yet")
    fill = globals()[name + "_"]

    def old(*args, **kwargs):
        from warnings import warn

        warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return fill(*args, **kwargs)

    return old


def calculate_gain(nonlinearity, param=None):
    """The factor by which a layer before ``nonlinearity`` is scaled so that variance is kept."""
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _phi(x):
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal, kept within [a, b], by drawing again what falls outside.

    Where [a, b] holds less than 0.3 of the distribution, proposals are uniform in [a, b] and accepted by density.
    Every round draws for the whole tensor, as PyTorch does, so the stream is the same.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        from warnings import warn

        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor
    with no_grad():
        likely = _phi((b - mean) / std) - _phi((a - mean) / std) > 0.3
        return (_redraw_normal if likely else _redraw_uniform)(tensor, mean, std, a, b, generator)


def _redraw_normal(tensor, mean, std, a, b, generator):
    from .. import empty_like, where

    low, high = (tensor.new_full((), end, device="cpu").item() for end in (a, b))  # the ends in the tensor's dtype
    tensor.normal_(mean, std, generator=generator)
    while (outside := (tensor < low) | (tensor > high)).any():
        again = empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(where(outside, again, tensor))
    return tensor


def _redraw_uniform(tensor, mean, std, a, b, generator):
    from .. import empty_like, where

    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    wanted = None  # what has not been accepted yet; all of it in the first round
    while wanted is None or wanted.any():
        proposal = empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(proposal if wanted is None else where(wanted, proposal, tensor))
        log_density = proposal.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = empty_like(tensor).uniform_(generator=generator).log_() > log_density
        wanted = refused if wanted is None else wanted & refused
    return tensor


def constant_(tensor, val):
    """``val`` everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """One everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zero everywhere."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor):
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor, groups=1):
    """The identity as a convolution: as many channels as there are pass unchanged."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out_per_group = tensor.size(0) // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(out_per_group, tensor.size(1))):
                tensor[(group * out_per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many numbers feed one output, and how many one input feeds."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive, tensor.size(0) * receptive


def _fan(tensor, mode):
    modes = ("fan_in", "fan_out")
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(modes)}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with variance ``2 gain^2 / (fan_in + fan_out)``. Source: Glorot and Bengio, 2010."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with variance ``2 gain^2 / (fan_in + fan_out)``. Source: Glorot and Bengio, 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """The standard deviation of Kaiming's scheme; None for a tensor without elements, with a warning."""
    if 0 in tensor.shape:
        from warnings import warn

        warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with variance ``gain^2 / fan``. Source: He and others, 2015."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with variance ``gain^2 / fan``. Source: He and others, 2015."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix of the rows, times ``gain``. Source: Saxe and others, 2013."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with no_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            flat.t_()
        q, r = _qr(flat)
        q *= r.diagonal().sign()  # makes the draw uniform over orthogonal matrices
        if rows < columns:
            q.t_()
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def _qr(matrix):
    from .. import linalg

    return linalg.qr(matrix)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal, with the share ``sparsity`` of each column set to zero. Source: Martens, 2010."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    from .. import randperm

    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor
