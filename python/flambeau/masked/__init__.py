"""Reductions and normalisations of the elements that a mask holds.

A mask is bool (or becomes so) and broadcasts to the input; where it does not hold an element takes no part. Without a
mask all take part. A reduction over nothing gives what it begins with: 0 for sums, 1 for products, NaN for means.
"""

from .. import _C
from ..nn import functional as F

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

_SMALL = (_C.uint8, _C.bool, _C.int8, _C.int16, _C.int32)


def _dims(dim, ndim):
    """Dimensions in order, counted from the front; none given stand for all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= d < ndim:
            raise IndexError(f"masked: Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        if d % ndim in found:
            raise RuntimeError(f"masked: dim={d} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(sorted(found))


def _whole(input, mask):
    """The mask in the shape of the input."""
    if mask.shape != input.shape:
        if mask.dim() > input.dim():
            raise IndexError(f"masked: mask of shape {tuple(mask.shape)} has more dimensions than input of shape {tuple(input.shape)}")
        mask = mask.broadcast_to(input.shape)
    return mask.to(_C.bool)


def _filled(input, mask, value):
    """The input with a value where the mask does not hold."""
    if mask is None:
        return input
    return _C.where(_whole(input, mask), input, _C.tensor(value, dtype=input.dtype, device=input.device))


def _extreme(dtype, lowest):
    if dtype.is_floating_point or dtype.is_complex:
        return float("-inf") if lowest else float("inf")
    info = _C.iinfo(dtype)
    return info.min if lowest else info.max


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum over dimensions; small integers become int64."""
    dtype = dtype or (_C.int64 if input.dtype in _SMALL else input.dtype)
    return _C.sum(_filled(input, mask, 0), _dims(dim, input.dim()), bool(keepdim), dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product over dimensions; small integers become int64."""
    dtype = dtype or (_C.int64 if input.dtype in _SMALL else input.dtype)
    result = _filled(input, mask, 1).to(dtype)
    for d in reversed(_dims(dim, input.dim())):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum along a dimension."""
    dtype = dtype or input.dtype
    return _C.cumsum(_filled(input, mask, 0), _dims(dim, input.dim())[0], dtype=dtype).to(dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product along a dimension."""
    dtype = dtype or input.dtype
    return _C.cumprod(_filled(input, mask, 1), _dims(dim, input.dim())[0], dtype=dtype).to(dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest element over dimensions."""
    masked = _filled(input, mask, _extreme(input.dtype, True))
    return _C.amax(masked, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest element over dimensions."""
    masked = _filled(input, mask, _extreme(input.dtype, False))
    return _C.amin(masked, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the largest element along a dimension (of all, flattened, without one)."""
    masked = _filled(input, mask, _extreme(input.dtype, True))
    return _C.argmax(masked, dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the smallest element along a dimension (of all, flattened, without one)."""
    masked = _filled(input, mask, _extreme(input.dtype, False))
    return _C.argmin(masked, dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input, dim, keepdim, mask):
    if mask is None:
        return sum(_C.ones(input.shape, dtype=_C.int64, device=input.device), dim, keepdim=keepdim)
    return _whole(input, mask).sum(_dims(dim, input.dim()), bool(keepdim))


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean over dimensions; NaN of nothing. Integers need a floating point ``dtype``."""
    source, dtype = ("Optional", dtype) if dtype else ("Input", input.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {dtype}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Lower median along a dimension; NaN of nothing, which is refused for integers."""
    floating = input.is_floating_point()
    values = input if floating else input.to(_C.float32)
    result = _C.nanmedian(_filled(values, mask, float("nan")), _dims(dim, input.dim())[0], keepdim).values
    if floating:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype or input.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials over dimensions."""
    masked = _filled(input, mask, _extreme(input.dtype, True))
    return _C.logsumexp(masked, _dims(dim, input.dim()), keepdim=keepdim).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """``log(exp(input) + exp(other))``, each with a mask of its own."""
    low = float("-inf")
    return _C.logaddexp(_filled(input, input_mask, low), _filled(other, other_mask, low)).to(dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Norm of order ``ord`` over dimensions."""
    ord = 2.0 if ord is None else ord
    masked = _filled(input, mask, float("inf") if ord == float("-inf") else 0)
    return _C.linalg_vector_norm(masked, ord, _dims(dim, input.dim()), bool(keepdim), dtype=dtype or input.dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root):
    if unbiased is not None and correction is not None:
        raise AssertionError("masked: only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else _C.float32
    compute = dtype if dtype.is_floating_point or dtype.is_complex else _C.float32
    count = _count(input, dim, True, mask)
    centred = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(centred * (centred.conj() if centred.is_complex() else centred), dim, keepdim=keepdim, dtype=compute, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction != 0:
        real = {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(compute, compute)
        count = (count.to(real) - correction).clamp_min(0)
    result = (total / count).to(dtype)
    return result.sqrt() if root else result


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance over dimensions, by ``count - correction`` (1 unless given); NaN of nothing."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, False)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation over dimensions: the root of `var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, True)


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax along a dimension."""
    masked = _filled(input, mask, _extreme(input.dtype, True))
    return F.softmax(masked, _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of softmax along a dimension."""
    masked = _filled(input, mask, _extreme(input.dtype, True))
    return F.log_softmax(masked, _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negated elements along a dimension."""
    masked = _filled(input, mask, _extreme(input.dtype, False))
    return F.softmax(-masked, _dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Vectors along a dimension divided by their norm, or by ``eps`` where that is smaller."""
    dtype = dtype or input.dtype
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / _C.maximum(length, _C.tensor(eps, dtype=length.dtype, device=length.device))
