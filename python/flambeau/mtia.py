"""Meta's accelerators: flambeau has none, and says so."""

from ._absent import interface as _interface

globals().update(_interface("mtia"))


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'mtia.{name}' yet")
