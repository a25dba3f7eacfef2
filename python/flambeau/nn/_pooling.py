"""Pools under PyTorch's signatures: results with their indices, sizes that are guessed, random places."""

import math

from .. import _C

_nn = _C._nn


def _pair(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def _max_pool(n):
    name = f"max_pool{n}d"
    plain = getattr(_C, name)
    both = getattr(_nn, name + "_with_indices", None) or getattr(_C, name + "_with_indices")

    def with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        return both(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        stride = [] if stride is None else stride
        chosen = both if return_indices else plain
        return chosen(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = (
        f"The largest elements of windows over the last {n} dimension(s); with ``return_indices`` their places.\n\n"
        "``stride`` is ``kernel_size`` unless given; ``ceil_mode`` allows last windows that are not whole."
    )
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = f"``{name}``, and where the elements are."
    return pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _adaptive_sizes(size, input, n):
    """``size`` for each of ``n`` dimensions; None stands for the input's own."""
    if isinstance(size, int) or size is None:
        size = (size,) * n
    if input.dim() <= len(size):
        raise ValueError(f"Input dimension should be at least {len(size) + 1}, got shape {tuple(input.shape)}")
    if len(size) == 1:
        size = tuple(size) * n
    own = input.shape[-n:]
    return [o if s is None else s for s, o in zip(size, own, strict=False)] if len(size) == n else list(size)


def _adaptive_max_pool(n):
    name = f"adaptive_max_pool{n}d"
    both = getattr(_nn, name, None) or getattr(_C, name)

    def with_indices(input, output_size, return_indices=False):
        return both(input, _adaptive_sizes(output_size, input, n))

    def pool(input, output_size, return_indices=False):
        found = both(input, _adaptive_sizes(output_size, input, n))
        return found if return_indices else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = (
        f"The largest elements of the parts into which the last {n} dimension(s) are cut, so that there are "
        "``output_size`` of them; None keeps a dimension's size."
    )
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = f"``{name}``, and where the elements are."
    return pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


def adaptive_avg_pool2d(input, output_size):
    """Means of the parts into which the last two dimensions are cut; None keeps a dimension's size."""
    return _nn.adaptive_avg_pool2d(input, _adaptive_sizes(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    """Means of the parts into which the last three dimensions are cut; None keeps a dimension's size."""
    return _nn.adaptive_avg_pool3d(input, _adaptive_sizes(output_size, input, 3))


def _lp_pool(n):
    average = getattr(_nn, f"avg_pool{n}d", None) or getattr(_C, f"avg_pool{n}d")

    def pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        if norm_type == 0:
            raise ValueError(f"{pool.__name__}: norm_type must be a non-zero value, but got 0")
        count = math.prod(_pair(kernel_size, n))
        out = average(input.pow(norm_type), kernel_size, [] if stride is None else stride, 0, ceil_mode)
        return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = f"lp_pool{n}d"
    pool.__doc__ = f"``(sum of x^p)^(1/p)`` over windows of the last {n} dimension(s), ``p`` being ``norm_type``."
    return pool


lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)


def _unpool_size(input, kernel_size, stride, padding, output_size):
    """The size that a pool had before it: computed, or checked where ``output_size`` says it."""
    n = len(kernel_size)
    sizes = input.shape[-n:]
    default = [(s - 1) * t + k - 2 * p for s, k, t, p in zip(sizes, kernel_size, stride, padding, strict=True)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for d in range(n):
        least, most = default[d] - stride[d], default[d] + stride[d]
        if not least < output_size[d] < most:
            raise ValueError(
                f"invalid output_size '{output_size}' (dim {d} must be between {least} and {most})"
            )
    return list(output_size)


def _max_unpool(n):
    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel = _pair(kernel_size, n)
        step = kernel if stride is None else _pair(stride, n)
        pad = _pair(padding, n)
        size = _unpool_size(input, kernel, step, pad, output_size)
        if n == 1:
            size = [*size, 1]
            return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size).squeeze(-1)
        if n == 2:
            return _nn.max_unpool2d(input, indices, size)
        return _nn.max_unpool3d(input, indices, size, step, pad)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{n}d"
    unpool.__doc__ = (
        f"Zeros, but for the elements that ``max_pool{n}d`` kept, at the places that it returned.\n\n"
        "``output_size`` is the size before the pool, where several fit."
    )
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)


def _fractional_max_pool(n):
    name = f"fractional_max_pool{n}d"
    native = getattr(_nn, name)

    def with_indices(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = (output_ratio,) * n if isinstance(output_ratio, (int, float)) else output_ratio
            output_size = [int(s * r) for s, r in zip(input.shape[-n:], ratio, strict=True)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = _C.rand(
                batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device
            )
        return native(input, kernel_size, output_size, _random_samples)

    def pool(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        found = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return found if return_indices else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = (
        f"The largest elements of windows over the last {n} dimensions, whose places are drawn at random.\n\n"
        "The result has the sizes ``output_size``, or the input's times ``output_ratio``.\n"
        'Source: Graham, "Fractional max-pooling", 2014.'
    )
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    with_indices.__doc__ = f"``{name}``, and where the elements are."
    return pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(3)
