"""TorchScript's names. flambeau runs functions and modules as they are written; decorators hand them through.

What would need a compiled program (saving and loading one, its graph) is refused.
"""

import builtins
from typing import Final

from .._once import warn_once
from ..futures import Future
from ..nn import Module

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "enable_onednn_fusion",
    "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "set_module", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


class Error(RuntimeError):
    """What TorchScript raises."""


JITException = Error


class TracerWarning(Warning):
    """What a trace warns of."""


class ScriptModule(Module):
    """The base of modules written for TorchScript: an ordinary module."""

    def save(self, f, **_):
        """Save the compiled module: refused."""
        save(self, f)


class ScriptFunction:
    """The class of compiled functions; there are none, functions stay functions."""


RecursiveScriptModule = ScriptModule


def _eager(what):
    warn_once(
        f"torch.jit.{what}: flambeau has no TorchScript; the program runs eagerly, with the same results", stacklevel=3
    )


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """``obj`` (a function, a module, a class) as it is: it runs eagerly."""
    if obj is not None and not _is_class(obj):
        _eager("script")
    return script if obj is None else obj


def _is_class(obj):
    """Whether ``obj`` is a class, which scripting only marks."""
    return builtins.isinstance(obj, type)


def trace(func, example_inputs=None, *args, **kwargs):
    """``func`` as it is; it is called on the example once, as a trace would."""
    _eager("trace")
    inputs = example_inputs if builtins.isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    if example_inputs is not None:
        func(*inputs)
    elif kwargs.get("example_kwarg_inputs"):
        func(**kwargs["example_kwarg_inputs"])
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """``mod`` as it is; each method named in ``inputs`` is called on its example."""
    _eager("trace_module")
    for name, example in inputs.items():
        getattr(mod, name)(*(example if builtins.isinstance(example, tuple) else (example,)))
    return mod


def _same(function, *_):
    return function


def ignore(drop=False, **kwargs):
    """A decorator for what a compiler should leave alone."""
    return drop if callable(drop) else _same


def script_method(fn):
    """Decorates a method of a ``ScriptModule``; it stays as it is."""
    return fn


def export(fn):
    """Decorates a method that a compiler should compile; it stays as it is."""
    return fn


def unused(fn):
    """Decorates a method that a compiler should leave out; it stays as it is."""
    return fn


def interface(obj):
    """Decorates a class that says what modules have in common; it stays as it is."""
    return obj


def script_if_tracing(fn):
    """Decorates a function that a trace would compile; it stays as it is."""
    return fn


def is_scripting():
    """Whether a function is being compiled."""
    return False


def is_tracing():
    """Whether a trace is going on."""
    return False


def annotate(the_type, the_value):
    """The value; a compiler would take its type from here."""
    return the_value


def Attribute(value, type):
    """The value; a compiler would take its type from here."""
    return value


def isinstance(obj, target_type):
    """``isinstance``, for types with parameters such as ``List[int]`` too."""
    from typing import Union, get_args, get_origin

    origin, args = get_origin(target_type), get_args(target_type)
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    if target_type is None or target_type is type(None):
        return obj is None
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if origin is Union or origin.__name__ == "UnionType":
        return any(isinstance(obj, t) for t in args)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(args) and all(isinstance(x, t) for x, t in zip(obj, args))
    return all(isinstance(x, args[0]) for x in obj)


def fork(func, *args, **kwargs):
    """A future of what ``func`` gives; it is called at once."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The result of a future."""
    return future.wait()


class _Block:
    """A block without effect."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class optimized_execution(_Block):
    """A block with or without optimizations: there are none."""


class strict_fusion(_Block):
    """A block that must become one kernel: nothing is compiled."""


class fuser(_Block):
    """A block with one of the fusers: there are none."""


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """``mod`` as it is."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """``mod`` as it is."""
    return mod


def set_fusion_strategy(strategy):
    """Which kernels to fuse: none are."""
    return []


def enable_onednn_fusion(enabled):
    """Whether oneDNN fuses: there is none."""


def onednn_fusion_enabled():
    """Whether oneDNN fuses."""
    return False


def set_module(obj, mod):
    """Set the module that a function is shown to belong to."""
    obj.__module__ = mod


def save(m, f, _extra_files=None):
    """Save a compiled program: refused."""
    raise NotImplementedError(
        "torch.jit.save: flambeau has no TorchScript; torch.save(module.state_dict(), file) keeps a module's parameters"
    )


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Load a compiled program: refused."""
    raise NotImplementedError(
        "torch.jit.load: flambeau has no TorchScript, so it cannot run a program that was saved so"
    )


def _overload(func):
    return func


_overload_method = _script_if_tracing = _overload


def __getattr__(name):
    if name == "annotations":
        from importlib import import_module

        return import_module(".annotations", __name__)
    raise AttributeError(f"flambeau has no 'jit.{name}' yet")
