"""flambeau: a tensor and deep-learning engine; PyTorch programs run on it unchanged."""

from . import _C
from ._C import *  # noqa: F403
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._tensor import Tensor

_LAZY = ("nn", "optim", "autograd", "utils", "cuda", "backends", "random", "serialization", "version", "testing")


def __getattr__(name):
    if name in _LAZY:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no '{name}' yet")
