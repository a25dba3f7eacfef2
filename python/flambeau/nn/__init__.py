"""Neural networks: modules, layers, losses, initialisers, utilities."""

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter


def __getattr__(name):
    if name in ("attention", "parallel", "DataParallel"):
        from importlib import import_module

        place = import_module("." + ("attention" if name == "attention" else "parallel"), __name__)
        return place.DataParallel if name == "DataParallel" else place
    raise AttributeError(f"flambeau has no 'nn.{name}' yet")
