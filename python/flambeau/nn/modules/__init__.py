"""The layers, by family."""

from importlib import import_module as _import

from .module import *  # noqa: F403
from .module import Module

_FAMILIES = (
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout", "flatten",
    "fold", "instancenorm", "linear", "loss", "normalization", "padding", "pixelshuffle", "pooling", "rnn", "sparse",
    "transformer", "upsampling",
)  # fmt: skip

__all__ = ["Module"]
for _name in _FAMILIES:
    _family = _import(f".{_name}", __name__)
    globals().update((name, getattr(_family, name)) for name in _family.__all__)
    __all__ += _family.__all__
__all__.remove("NonDynamicallyQuantizableLinear")
