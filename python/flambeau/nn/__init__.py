"""Neural networks: modules, layers, losses, initialisers, utilities."""

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'nn.{name}' yet")
