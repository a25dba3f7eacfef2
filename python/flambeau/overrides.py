"""Classes that stand in for tensors: ``__torch_function__``, which flambeau does not call yet."""

from functools import wraps

from . import _C
from ._tensor import Tensor

__all__ = [
    "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
    "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args):
    """Whether one of the arguments is of a class with a ``__torch_function__`` of its own."""
    return any(hasattr(type(arg), "__torch_function__") and not isinstance(arg, Tensor) for arg in relevant_args)


def has_torch_function_unary(arg):
    """``has_torch_function`` for one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    """``has_torch_function`` for arguments one by one."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """What the first argument's ``__torch_function__`` gives that does not decline."""
    types = tuple({type(a) for a in relevant_args if hasattr(type(a), "__torch_function__")})
    for arg in relevant_args:
        if has_torch_function((arg,)):
            result = type(arg).__torch_function__(public_api, types, args, kwargs)
            if result is not NotImplemented:
                return result
    raise TypeError(
        f"no implementation found for '{resolve_name(public_api)}' on types that implement __torch_function__: {types}"
    )


def wrap_torch_function(dispatcher):
    """A decorator after which a function asks the arguments that ``dispatcher`` names for their ``__torch_function__``."""

    def inner(func):
        @wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(inp):
    """Whether something is a tensor or stands in for one."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether a function belongs to ``Tensor``."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


def resolve_name(f):
    """The name by which a function is found."""
    return f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', f)}".lstrip(".")


def get_ignored_functions():
    """Functions that never ask for ``__torch_function__``."""
    return set()


def get_default_nowrap_functions():
    """Functions whose results stay plain tensors."""
    return {getattr(_C.TensorBase, name, None) for name in ("grad", "_grad")} - {None}


class TorchFunctionMode:
    """A block in which every function would ask this object first: refused."""

    def __enter__(self):
        raise NotImplementedError("TorchFunctionMode: flambeau does not hand its functions to modes yet")

    def __exit__(self, *_):
        return False


class enable_reentrant_dispatch:
    """A block without effect: nothing is dispatched."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
