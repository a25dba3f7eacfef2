"""CUDA devices: flambeau has none yet, and says so."""

from .._absent import interface as _interface

globals().update(
    _interface("cuda", ("Stream", "Event", "CUDAGraph", "graph", "StreamContext", "ExternalStream", "MemPool"))
)

default_generators = ()
has_half = has_magma = False
_LAZY = ("amp", "comm", "memory", "nccl", "nvtx", "profiler", "random", "streams")


class CudaError(RuntimeError):
    """What a CUDA call would raise."""


class DeferredCudaCallError(Exception):
    """What a call that waited for CUDA would raise."""


def __getattr__(name):
    if name in _LAZY:
        from importlib import import_module

        return import_module("." + name, __name__)
    if name == "OutOfMemoryError":
        from .. import _C

        return _C.OutOfMemoryError
    if name.endswith("Tensor"):
        from .. import _legacy

        if name in _legacy.DTYPES:
            made = globals()[name] = _legacy.tensor_type(name, "cuda")
            return made
    raise AttributeError(f"flambeau has no 'cuda.{name}' yet")


def _lazy_init():
    globals()["init"]()


def _is_compiled():
    return False


def _lazy_call(function, **_):
    """Call something once CUDA is there: never."""
