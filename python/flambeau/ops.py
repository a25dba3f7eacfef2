"""Operations by their full names, as ``torch.ops.aten.add.Tensor``: the native function of that name."""

from . import _C


class _Packet:
    """An operation; its overloads are itself, since a native function tries all of its forms."""

    def __init__(self, name, function):
        self.__name__, self.__qualname__ = name, "aten." + name
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
        function = getattr(_C, name, None) or getattr(_C._nn, name, None)
        if name.startswith("__") or function is None:
            raise AttributeError(f"flambeau has no 'ops.{self.__name__}.{name}' yet")
        made = self.__dict__[name] = _Packet(name, function)
        return made


aten = _Namespace("aten")
