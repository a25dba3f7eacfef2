"""flambeau: a tensor and deep-learning engine; PyTorch programs run on it unchanged.

>>> import flambeau as torch
>>> x = torch.ones(2, requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 2.])
"""

from . import _C
from ._C import *  # noqa: F403
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._tensor import Tensor
from .functional import *  # noqa: F403
from .version import __version__

_LAZY_MODULES = frozenset((
    "accelerator", "autograd", "backends", "cuda", "linalg", "masked", "fft", "nn", "ops", "optim", "signal", "random", "serialization", "special", "testing", "utils",
    "version",
))  # fmt: skip
_LAZY_NAMES = {
    "install_as_torch": "_install",
    "load": "serialization", "save": "serialization",
    "manual_seed": "random", "seed": "random", "initial_seed": "random", "get_rng_state": "random",
    "set_rng_state": "random",
    "bartlett_window": "_windows", "blackman_window": "_windows", "hamming_window": "_windows", "hann_window": "_windows",
    "kaiser_window": "_windows",
    "lobpcg": "_lowrank", "lu": "_lowrank", "pca_lowrank": "_lowrank", "svd_lowrank": "_lowrank",
    "istft": "_spectra", "stft": "_spectra", "asarray": "_buffers", "frombuffer": "_buffers",
    "compile": "_compile", "set_printoptions": "_printing",
}  # fmt: skip


def __getattr__(name):
    if name in _LAZY_MODULES:
        from importlib import import_module

        return import_module("." + name, __name__)
    place = _LAZY_NAMES.get(name)
    if place is None and name.endswith("Tensor"):
        from ._legacy import DTYPES, tensor_type

        if name in DTYPES:
            made = globals()[name] = tensor_type(name)
            return made
    if place is None:
        raise AttributeError(f"flambeau has no '{name}' yet")
    from importlib import import_module

    value = globals()[name] = getattr(import_module("." + place, __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *_LAZY_MODULES, *_LAZY_NAMES})


def is_tensor(obj):
    """Whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def typename(obj):
    """The name of a tensor's type, such as ``torch.FloatTensor``, or of any object's class."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
