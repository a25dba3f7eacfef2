"""Forward mode: tensors that carry a tangent, and operations that hand tangents on.

>>> import flambeau as torch
>>> import flambeau.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor(0.0), torch.tensor(2.0))
...     fwAD.unpack_dual(x.sin()).tangent
tensor(2.)
"""

from collections import namedtuple

from .. import _C
from .._tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "A tensor without its tangent, and the tangent, None where there is none."


def enter_dual_level():
    """Enter a level of forward mode: tangents live until it is left. Levels do not nest; `func.jvp` does."""
    return _C._enter_dual_level()


def exit_dual_level(*, level=None):
    """Leave the level: all tangents are gone."""
    _C._exit_dual_level(_C._dual_level() if level is None else level)


class dual_level:
    """A context in which tensors have tangents."""

    def __enter__(self):
        self.level = enter_dual_level()
        return self.level

    def __exit__(self, *error):
        exit_dual_level(level=self.level)


def _check_level(what):
    if _C._dual_level() == 0:
        raise RuntimeError(
            f"Trying to {what} a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )


def make_dual(tensor, tangent, *, level=None):
    """A view of ``tensor`` that carries ``tangent``, of the same shape and dtype (floating point or complex)."""
    _check_level("create")
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(value).__name__}")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if _C._tangent(tensor) is not None:
        raise RuntimeError("make_dual: the tensor already has a tangent; setting another one is not supported")
    dual = tensor.view_as(tensor)
    _C._set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """The tensor without its tangent, and the tangent: a named tuple ``(primal, tangent)``."""
    if _C._dual_level() == 0:
        return UnpackedDualTensor(tensor, None)
    tangent = _C._tangent(tensor)
    return UnpackedDualTensor(tensor if tangent is None else _C._primal(tensor), tangent)


class _set_fwd_grad_enabled:
    """Switches the handing on of tangents, for a block or for good."""

    def __init__(self, mode):
        self.before = _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        return None

    def __exit__(self, *error):
        _C._set_fwd_grad_enabled(self.before)
