"""Names of PyTorch's tracer that programs set and call. flambeau runs a program as it is written, so they do little."""

from . import config
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph", "explain",
    "forbid_in_graph", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static", "maybe_mark_dynamic",
    "nonstrict_trace", "optimize", "reset", "run",
]  # fmt: skip


def __getattr__(name):
    if name in ("eval_frame", "utils", "exc"):
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no '_dynamo.{name}' yet")


def _same(fn=None, *args, **kwargs):
    """``fn`` as it is; also a decorator with arguments."""
    return (lambda function: function) if fn is None else fn


disable = allow_in_graph = disallow_in_graph = forbid_in_graph = assume_constant_result = nonstrict_trace = run = _same


def optimize(backend="inductor", **_):
    """What ``torch.compile`` does, as a decorator."""
    from .._compile import compile

    return compile


def reset():
    """Forget what was compiled."""


def graph_break(msg=""):
    """A place where a trace would end."""


def mark_dynamic(t, index, *, min=None, max=None, **_):
    """Say that a dimension's size will change."""


def mark_static(t, index=None):
    """Say that a dimension's size will not change."""


maybe_mark_dynamic = mark_dynamic


def is_compiling():
    """Whether a trace is going on."""
    return False


def list_backends(exclude_tags=()):
    """The compilers that there are: none yet."""
    return []


def explain(f, *_, **__):
    """What a trace of ``f`` would show: refused."""
    raise NotImplementedError("_dynamo.explain: flambeau does not compile yet, so there is nothing to explain")
