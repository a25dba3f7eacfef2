"""Switches of the backends. Those of devices that are not here are accepted and mean nothing."""

__all__ = ["cpu", "cuda", "cudnn", "mkldnn", "mps", "openmp"]


def __getattr__(name):
    if name in __all__:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no 'backends.{name}' yet")
