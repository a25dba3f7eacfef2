"""Intel's GPUs: flambeau has none, and says so."""

from ._absent import interface as _interface

globals().update(_interface("xpu", ("Stream", "Event", "StreamContext", "XPUGraph", "MemPool")))
default_generators = ()


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'xpu.{name}' yet")
