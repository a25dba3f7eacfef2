"""What a program tells a compiler about itself. flambeau runs it as it is written."""

from .._compile import compile
from .._dynamo import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip

is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin():
    """Where a step of CUDA graphs begins: there are none."""


class set_stance:
    """How eager a compiler should be; also a block and a decorator."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, function):
        return function


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False, **_):
    """A decorator that would put a function in another's place in a trace."""
    return lambda function: function


def wrap_numpy(fn):
    """A function of NumPy's arrays as one of tensors."""
    from functools import wraps

    from .. import Tensor, from_numpy

    @wraps(fn)
    def wrapped(*args, **kwargs):
        result = fn(*(a.numpy() if isinstance(a, Tensor) else a for a in args), **kwargs)
        return from_numpy(result) if type(result).__name__ == "ndarray" else result

    return wrapped


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'compiler.{name}' yet")
