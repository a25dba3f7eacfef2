"""Utilities on parameters and their gradients."""

from importlib import import_module as _import

from . import rnn
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init
from .weight_norm import remove_weight_norm, weight_norm

# Made of modules, so imported when they are asked for: modules need ``rnn`` from here.
_LATER = {
    "parametrize": None, "parametrizations": None, "stateless": None, "fusion": None, "prune": None,
    "spectral_norm": "spectral_norm",
    "remove_spectral_norm": "spectral_norm", "fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion", "fuse_linear_bn_weights": "fusion",
}  # fmt: skip
_MISSING = ("prune", "spectral_norm", "remove_spectral_norm")

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters", "remove_weight_norm", "rnn", "skip_init", "weight_norm",
    *(n for n in _LATER if n not in _MISSING),
]  # fmt: skip


def __getattr__(name):
    if name not in _LATER or name in _MISSING:
        raise AttributeError(f"flambeau has no 'nn.utils.{name}' yet")
    home = _LATER[name] or name
    found = _import(f".{home}", __name__)  # which puts the module itself here, under a name that may be a function's
    globals().update((n, getattr(found, n) if place else found) for n, place in _LATER.items() if (place or n) == home)
    return globals()[name]
