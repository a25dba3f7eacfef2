"""Operations that a program defines. A definition is a Python function that can be called and differentiated.

>>> import flambeau as torch
>>> @torch.library.custom_op("mine::twice", mutates_args=())
... def twice(x: torch.Tensor) -> torch.Tensor:
...     return x * 2
>>> twice(torch.ones(2))
tensor([2., 2.])
"""

from functools import update_wrapper

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_kernel", "impl", "impl_abstract",
    "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_vmap", "triton_op",
    "wrap_triton",
]  # fmt: skip

_defined = {}


class CustomOpDef:
    """An operation that a program defined: ``namespace::name``."""

    def __init__(self, name, fn):
        if name.count("::") != 1:
            raise ValueError(f"custom_op: expected the name to be 'namespace::name', got {name!r}")
        self._name, self._qualname = name.split("::")[1], name
        self._fn, self._backward, self._setup = fn, None, None
        update_wrapper(self, fn)
        _defined[name] = self

    def __call__(self, *args, **kwargs):
        if self._backward is None:
            return self._fn(*args, **kwargs)
        from inspect import signature

        bound = signature(self._fn).bind(*args, **kwargs)
        bound.apply_defaults()
        return self._function().apply(*bound.args, *bound.kwargs.values())

    def _function(self):
        from .autograd import Function

        op = self

        class Defined(Function):
            @staticmethod
            def forward(*args):
                return op._fn(*args)

            @staticmethod
            def setup_context(ctx, inputs, output):
                if op._setup is not None:
                    op._setup(ctx, inputs, output)

            @staticmethod
            def backward(ctx, *grads):
                return op._backward(ctx, *grads)

        return Defined

    def register_autograd(self, backward, /, *, setup_context=None):
        """Give its derivative."""
        self._backward, self._setup = backward, setup_context

    def register_fake(self, fn, /):
        """Give shapes and dtypes without computing; a trace would use it."""
        return fn

    register_abstract = register_fake

    def register_kernel(self, device_types, fn=None, /):
        """Give the function for a type of device; that for the CPU is used."""

        def keep(fn):
            devices = [device_types] if isinstance(device_types, str) or device_types is None else device_types
            if device_types is None or "cpu" in devices:
                self._fn = fn
            return fn

        return keep if fn is None else keep(fn)

    def register_vmap(self, func=None):
        """Give its form on stacks; vmap would use it."""
        return (lambda func: func) if func is None else func

    register_torch_dispatch = register_autocast = register_vmap


def custom_op(name, fn=None, /, *, mutates_args=(), device_types=None, schema=None, tags=None):
    """Make a function an operation; also a decorator."""
    return (lambda fn: CustomOpDef(name, fn)) if fn is None else CustomOpDef(name, fn)


triton_op = custom_op


def _op(op):
    found = op if isinstance(op, CustomOpDef) else _defined.get(op)
    if found is None:
        raise RuntimeError(f"torch.library: there is no operation '{op}' that was made by custom_op")
    return found


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Give the derivative of an operation."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Give shapes and dtypes of an operation's results; a trace would use it."""
    return (lambda func: func) if func is None else func


impl_abstract = register_fake


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Give the function for a type of device."""
    return _op(op).register_kernel(device_types, func)


def register_vmap(op, func=None, /, *, lib=None):
    """Give the form on stacks; vmap would use it."""
    return (lambda func: func) if func is None else func


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Say in which dtype an operation computes under autocast."""
    found = _op(op)
    from .amp.autocast_mode import _cast, autocast
    from . import is_autocast_enabled

    inner = found._fn

    def cast_first(*args, **kwargs):
        if not is_autocast_enabled(device_type):
            return inner(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return inner(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    found._fn = cast_first


def define(qualname, schema, *, lib=None, tags=()):
    """Name an operation; ``impl`` gives its function."""
    if "::" in qualname:
        CustomOpDef(qualname, _missing(qualname))


def _missing(name):
    def missing(*args, **kwargs):
        raise NotImplementedError(f"{name}: the operation was defined, but has no function for the CPU")

    return missing


def impl(qualname, types, func=None, *, lib=None):
    """Give the function of a defined operation; also a decorator."""

    def keep(func):
        if qualname not in _defined:
            CustomOpDef(qualname, func)
        elif types in ("default", "cpu", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            _defined[qualname]._fn = func
        return func

    return keep if func is None else keep(func)


class Library:
    """A namespace of operations."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind = ns, kind

    def define(self, schema, alias_analysis="", *, tags=()):
        """Name an operation by its schema."""
        name = schema.split("(")[0].split(".")[0]
        define(f"{self.ns}::{name}", schema)
        return name

    def impl(self, op_name, fn, dispatch_key="", **_):
        """Give the function of an operation."""
        impl(f"{self.ns}::{op_name.split('::')[-1]}", dispatch_key or "default", fn)


def fallthrough_kernel():
    """A function that hands on to the next: there is none."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_kernel(op, dispatch_key):
    """The function of an operation."""
    return _op(op)._fn


def wrap_triton(triton_kernel, /):
    """A kernel of Triton: refused."""
    raise NotImplementedError("torch.library.wrap_triton: flambeau does not run Triton's kernels")


def opcheck(op, args, kwargs=None, **_):
    """Call an operation; that it works is what can be checked."""
    _op(op)(*args, **(kwargs or {}))
    return {"test_call": "SUCCESS"}
