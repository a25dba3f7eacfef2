"""Reverse-mode differentiation: gradients of tensors with respect to tensors."""

from .. import _C
from .._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._tensor import Tensor
from .function import Function

__all__ = [
    "Variable", "Function", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode", "no_grad",
    "set_grad_enabled", "detect_anomaly", "set_detect_anomaly",
]  # fmt: skip


def __getattr__(name):
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        # The module has the name of its function: `autograd.gradcheck` is the function, as in PyTorch.
        from importlib import import_module

        module = import_module(".gradcheck", __name__)
        globals().update(gradcheck=module.gradcheck, gradgradcheck=module.gradgradcheck)
        return getattr(module, name)
    if name in ("detect_anomaly", "set_detect_anomaly"):
        from . import anomaly_mode

        return getattr(anomaly_mode, name)
    if name in ("anomaly_mode", "forward_ad", "functional", "graph", "profiler"):
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no 'autograd.{name}' yet")


class _VariableType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class _Engine:
    """What runs backward, as PyTorch's programs reach it."""

    @staticmethod
    def queue_callback(callback):
        """Have ``callback()`` called when the backward that runs now is done."""
        _C._queue_callback(callback)


class Variable(metaclass=_VariableType):
    """What tensors were called when only some could be differentiated; making one gives the tensor itself."""

    _execution_engine = _Engine

    def __new__(cls, data, requires_grad=False, volatile=None):
        return data.detach().requires_grad_(True) if requires_grad else data


def _is_edge(value):
    """Whether it is a :class:`graph.GradientEdge`."""
    return type(value).__name__ == "GradientEdge" and isinstance(value, tuple)


def _tuple(values):
    return (values,) if isinstance(values, Tensor) or values is None or _is_edge(values) else tuple(values)


def _roots(outputs, grads):
    """Tensors to start from and their gradients, a gradient of ones being None until the engine makes it."""
    outputs = _tuple(outputs)
    grads = (None,) * len(outputs) if grads is None else _tuple(grads)
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for i, (output, grad) in enumerate(zip(outputs, grads)):
        if grad is None or _is_edge(output):  # the engine checks edges
            continue
        if not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        if grad.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of "
                f"{output.shape}."
            )
        if grad.is_complex() != output.is_complex():
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have complex dtype: "
                f"grad_output[{i}] has {grad.dtype} and output[{i}] has {output.dtype}."
            )
    return outputs, grads


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors`` to ``grad`` of the leaves they come from, or of ``inputs`` alone.

    Instead of tensors there may be places in the graph, see :func:`graph.get_gradient_edge`. A tensor of one element needs no gradient of its own; for others ``grad_tensors`` gives it. The graph is freed
    unless ``retain_graph`` (which ``create_graph`` implies); ``create_graph`` records the backward itself.
    """
    if grad_variables is not None:
        grad_tensors = grad_variables if grad_tensors is None else grad_tensors
    if inputs is None:
        inputs = ()
    elif not (inputs := _tuple(inputs)):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots, grads = _roots(tensors, grad_tensors)
    retain = create_graph if retain_graph is None else retain_graph
    _C._autograd_backward(roots, grads, retain, create_graph, inputs, True, True)


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
    is_grads_batched=False, materialize_grads=False,
):  # fmt: skip
    """The sum of gradients of ``outputs`` with respect to each of ``inputs``, as a tuple; ``.grad`` stays untouched.

    An input that was not used is an error, unless ``allow_unused`` (None for it) or ``materialize_grads`` (zeros).
    """
    if not only_inputs:
        from warnings import warn

        warn("only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    inputs = _tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return _grad_of_batch(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    roots, grads = _roots(outputs, grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    unused = bool(allow_unused) or materialize_grads
    result = _C._autograd_backward(roots, grads, retain, create_graph, inputs, unused, False)
    if materialize_grads:
        result = tuple(_zeros(x, create_graph) if g is None else g for x, g in zip(inputs, result))
    return tuple(result)


def _zeros(x, requires_grad):
    if not isinstance(x, Tensor):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return _C.zeros_like(x, requires_grad=requires_grad)


def _grad_of_batch(outputs, inputs, grad_outputs, *options):
    """:func:`grad` for each of the gradients along dimension 0 of ``grad_outputs``, at once."""
    from ..func import vmap

    names = ("retain_graph", "create_graph", "allow_unused", "materialize_grads")
    used = {}

    def one(*seeds):
        found = grad(outputs, inputs, seeds, **dict(zip(names, options)))
        used["places"] = [i for i, g in enumerate(found) if g is not None]
        return tuple(g for g in found if g is not None)

    made = iter(vmap(one, randomness="error")(*_tuple(grad_outputs)))
    return tuple(next(made) if i in used["places"] else None for i in range(len(inputs)))
