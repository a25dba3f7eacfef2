"""``ops.aten.name``: native operations under the names of PyTorch's operator library, with or without an overload."""

from . import _C


class _Operation:
    """An operation; its overloads (``.default`` and others) are chosen by the arguments, so each is the operation."""

    def __init__(self, name, function):
        self.__name__ = name
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self

    def __repr__(self):
        return f"<operation aten.{self.__name__}>"


class _Namespace:
    """Operations by name, looked up when first asked for."""

    def __getattr__(self, name):
        for home in (_C, _C._nn, _C._special, _C._linalg):
            found = getattr(home, name, None)
            if callable(found):
                operation = _Operation(name, found)
                setattr(self, name, operation)
                return operation
        raise AttributeError(f"flambeau has no operation 'aten::{name}'")


aten = _Namespace()
