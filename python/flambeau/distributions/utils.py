"""Small things that distributions share."""

from functools import update_wrapper
from numbers import Number

import flambeau as torch
from flambeau.nn.functional import binary_cross_entropy_with_logits

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors, or the default."""
    if not all(isinstance(v, (torch.Tensor, Number)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    if all(isinstance(v, torch.Tensor) for v in values):
        return torch.broadcast_tensors(*values)
    options = {"dtype": torch.get_default_dtype()}
    for value in values:
        if isinstance(value, torch.Tensor):
            options = {"dtype": value.dtype, "device": value.device}
            break
    return torch.broadcast_tensors(*(v if isinstance(v, torch.Tensor) else torch.tensor(v, **options) for v in values))


def _standard_normal(shape, dtype, device):
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """``value`` summed over its last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds, or of unnormalised log-probabilities along the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def clamp_probs(probs):
    """Probabilities a little away from 0 and 1."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """The reverse of ``logits_to_probs``."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


def binary_entropy(probs, logits):
    """The entropy of a coin."""
    return binary_cross_entropy_with_logits(logits, probs, reduction="none")


class lazy_property:
    """A property that is computed once, when it is asked for, with gradients; then it is an attribute."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat, diag=0):
    """The elements of lower triangles, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., torch.tril(torch.ones(n, n, dtype=torch.bool), diag)]


def vec_to_tril_matrix(vec, diag=0):
    """The reverse of ``tril_matrix_to_vec``: zeros elsewhere."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., torch.tril(torch.ones(n, n, dtype=torch.bool), diag)] = vec
    return mat


def standard_gamma(shape):
    """Gamma draws of scale 1, whose gradient holds the place in the distribution fixed."""
    drawn = torch._C._standard_gamma(shape.detach())
    if not (shape.requires_grad and torch.is_grad_enabled()):
        return drawn
    return drawn + torch._C._standard_gamma_grad(shape.detach(), drawn) * (shape - shape.detach())


def dirichlet(shape):
    """Dirichlet draws, whose gradient holds each component's place in its distribution fixed."""
    drawn = torch._C._sample_dirichlet(shape.detach())
    if not (shape.requires_grad and torch.is_grad_enabled()):
        return drawn
    fixed = shape.detach()
    slope = torch._C._dirichlet_grad(drawn, fixed, fixed.sum(-1, True).expand(fixed.shape).contiguous())
    moved = slope * (shape - fixed)
    return drawn + moved - drawn * moved.sum(-1, True)
