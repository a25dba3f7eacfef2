"""``torch.ops``: operations by namespace and name, those of the table and those that a program defined."""

from . import _C

__all__ = ["ops"]


class _Namespace:
    """The operations of a namespace."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        from .library import _defined

        found = _defined.get(f"{self._name}::{name}")
        if found is None and self._name in ("aten", "prims"):
            found = getattr(_C, name, None) or getattr(_C._nn, name, None)
        if found is None:
            raise AttributeError(f"flambeau has no operation '{self._name}::{name}' yet")
        return _Overloads(found, f"{self._name}.{name}")


class _Overloads:
    """An operation; ``op.default`` and other overloads are the operation too."""

    def __init__(self, function, name):
        self._function, self.__name__ = function, name

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __repr__(self):
        return f"<flambeau operation {self.__name__}>"


class _Ops:
    """``torch.ops``."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Namespace(name)
        return made

    def load_library(self, path):
        """Load operations from a C++ library: refused."""
        raise NotImplementedError(f"torch.ops.load_library: flambeau has no C++ interface, so {path} cannot be loaded")


ops = _Ops()
