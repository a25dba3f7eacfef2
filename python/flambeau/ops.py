"""Operations by their full names, as ``torch.ops.aten.add.Tensor``: native functions, and those that a program defined."""

from . import _C


class _Packet:
    """An operation; its overloads are itself, since a native function tries all of its forms."""

    def __init__(self, name, function):
        self.__name__, self.__qualname__ = name.split(".")[-1], name
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self):
        return f"<operation {self.__qualname__}>"


class _Namespace:
    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        function = self._find(name)
        if name.startswith("__") or function is None:
            raise AttributeError(f"flambeau has no 'ops.{self.__name__}.{name}' yet")
        made = self.__dict__[name] = _Packet(f"{self.__name__}.{name}", function)
        return made

    def _find(self, name):
        if self.__name__ in ("aten", "prims"):
            return getattr(_C, name, None) or getattr(_C._nn, name, None)
        from .library import _defined

        return _defined.get(f"{self.__name__}::{name}")


def load_library(path):
    """Load operations from a C++ library: refused."""
    raise NotImplementedError(f"torch.ops.load_library: flambeau has no C++ interface, so {path} cannot be loaded")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    made = globals()[name] = _Namespace(name)
    return made


aten = _Namespace("aten")
