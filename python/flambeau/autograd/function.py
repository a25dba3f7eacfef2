"""Functions with a derivative of their own, written in Python."""

from .. import _C
from .._grad_mode import no_grad
from .._tensor import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What ``forward`` and ``backward`` of a :class:`Function` share; any attribute may be set on it."""

    _to_save = ()
    _dirty = ()
    _non_differentiable = ()
    _materialize = True
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keep tensors for backward, where they are ``saved_tensors``; changing one in place meanwhile is an error."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save tensors, but got {type(tensor).__name__}: keep other things as "
                    "attributes of ctx"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for ``jvp``, where they are ``saved_tensors``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"save_for_forward can only save tensors, but got {type(tensor).__name__}")
        self._saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Say which inputs forward has changed in place; they must be among its outputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Say which outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value):
        """Whether backward is given zeros, or None, for outputs that nothing depended on."""
        self._materialize = bool(value)


class _Meta(type):
    """Gives each Function the class of its contexts, which is also the class of its nodes in the graph."""

    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        cls._node_class = type(
            name + "Backward", (_Node,), {"_function": cls, "__module__": cls.__module__, "__doc__": None}
        )


class _Node(_C._FunctionNode, FunctionCtx):
    """One call of a Function: its context and its node. The engine calls ``_run_backward``."""

    _function = None
    _places = None  # which outputs are tensors, and how many outputs there are, where some are not

    def _run_backward(self, grads):
        function = type(self)._function
        derivative = function.backward if function.backward is not Function.backward else function.vjp
        if self._places is not None:
            # Outputs that are no tensors have their argument too: None.
            at, count = self._places
            by_output = dict(zip(at, grads))
            grads = [by_output.get(i) for i in range(count)]
        given = derivative(self, *grads)
        given = given if isinstance(given, (tuple, list)) else (given,)
        wanted = len(self.needs_input_grad)
        if len(given) > wanted and all(extra is None for extra in given[wanted:]):
            given = given[:wanted]
        if len(given) != wanted:
            raise RuntimeError(
                f"function {function.__name__}Backward returned an incorrect number of gradients "
                f"(expected {wanted}, got {len(given)})"
            )
        for i, grad in enumerate(given):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(
                    f"function {function.__name__}Backward: gradient {i} should be a Tensor or None, "
                    f"but got {type(grad).__name__}"
                )
        return tuple(given)


class Function(metaclass=_Meta):
    """A differentiable function in Python: define ``forward`` and ``backward`` as static methods, call ``apply``.

    ``forward(ctx, *args)`` computes without recording; ``backward(ctx, *grad_outputs)`` returns one gradient for each
    argument, None for those that have none. With ``setup_context(ctx, inputs, output)`` defined, ``forward`` takes no
    ``ctx``.

    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    """

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            f"should invoke them on the class itself: {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep what backward needs, where ``forward`` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of the arguments from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    generate_vmap_rule = False

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The tangents of the outputs from those of the arguments, None for an argument that has none."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """The outputs for a batch of examples, which lie along ``in_dims`` of the arguments, and their own dimensions."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Call the function and record it."""
        if _C._transform_depth():
            from ..func._custom import apply_inside

            return apply_inside(cls, args, kwargs)
        if _C._dual_level() and any(isinstance(x, Tensor) and _C._tangent(x) is not None for x in args):
            from ..func._custom import apply_with_tangents

            return apply_with_tangents(cls, args, kwargs)
        return cls._apply_here(args, kwargs)[0]

    @classmethod
    def _apply_here(cls, args, kwargs):
        """The outputs of a recorded call, and its context."""
        ctx = cls._node_class()
        ctx.needs_input_grad = needs = tuple([isinstance(x, Tensor) and x.requires_grad for x in args])
        with no_grad():
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
        outputs = result if isinstance(result, tuple) else (result,)
        recorded = any(needs) and _C.is_grad_enabled()
        outputs = cls._attach(ctx, args, outputs) if recorded else _unshared(args, outputs, ctx._dirty)
        return outputs if isinstance(result, tuple) else outputs[0], ctx

    @classmethod
    def _attach(cls, ctx, args, outputs):
        """The outputs with ``ctx`` as their node."""
        for tensor in ctx._dirty:
            if not any(tensor is output for output in outputs):
                raise RuntimeError(
                    f"{cls.__name__}: some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the Function."
                )
        at = [i for i, output in enumerate(outputs) if isinstance(output, Tensor)]
        made = _C._function_attach(
            ctx, args, tuple([outputs[i] for i in at]), ctx._to_save, ctx._dirty, ctx._non_differentiable,
            ctx._materialize,
        )  # fmt: skip
        ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
        if len(at) == len(outputs):
            return tuple(made)
        ctx._places = (at, len(outputs))
        full = list(outputs)
        for i, tensor in zip(at, made):
            full[i] = tensor
        return tuple(full)


def _unshared(args, outputs, dirty):
    """Outputs of an unrecorded call; an argument that is returned unchanged comes back as another tensor."""
    inputs = {id(x) for x in args if isinstance(x, Tensor)} - {id(x) for x in dirty}
    if not any(id(x) in inputs for x in outputs):
        return outputs
    with no_grad():
        return tuple([x.view_as(x) if id(x) in inputs else x for x in outputs])


class _Once(Function):
    """Identity that refuses to be differentiated."""

    @staticmethod
    def forward(ctx, *tensors):
        return tuple([tensor.view_as(tensor) for tensor in tensors])

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward):
    """Decorates a ``backward`` whose own derivative would be wrong: asking for it is then an error."""
    from functools import wraps

    @wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            given = backward(ctx, *grads)
        watched = any(isinstance(x, Tensor) and x.requires_grad for x in grads)
        if not (watched and _C.is_grad_enabled()):
            return given
        results = list(given) if isinstance(given, tuple) else [given]
        at = [i for i, x in enumerate(results) if isinstance(x, Tensor)]
        guarded = _Once.apply(*[results[i].detach().requires_grad_() for i in at])
        for i, tensor in zip(at, guarded):
            results[i] = tensor
        return tuple(results) if isinstance(given, tuple) else results[0]

    return wrapper
