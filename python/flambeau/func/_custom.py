"""Custom functions inside transforms: each level is handled by the rule that the function has for it."""

from collections import namedtuple
from functools import partial

from .. import _C
from .._grad_mode import no_grad
from .._tensor import Tensor
from ..autograd.forward_ad import _set_fwd_grad_enabled

VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])
VmapInfo.__doc__ = "How many examples there are, and what random operations do."


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def apply_inside(function, args, kwargs):
    """Call a custom function inside a transform."""
    from ..autograd.function import Function

    if function.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod: forward takes no ctx then."
        )
    level, size, randomness = _C._top_level()

    def own(x):
        wrapped = _C._wrapped(x) if isinstance(x, Tensor) else None
        return wrapped is not None and wrapped[0] == level

    values = tuple([_C._wrapped(x)[1] if own(x) else x for x in args])
    if all(value is x for value, x in zip(values, args)):
        return _C._below(partial(function.apply, *args, **kwargs))
    if size is not None:
        return _batched(function, args, values, kwargs, level, VmapInfo(size, randomness))
    return _differentiated(function, args, values, kwargs, level)


def _differentiated(function, args, values, kwargs, level):
    """At a level that differentiates: the call below, and its derivative here."""
    result = _C._below(partial(function.apply, *values, **kwargs))

    def lift(y):
        for value, x in zip(values, args):
            if y is value:
                return x
        differentiable = isinstance(y, Tensor) and (y.is_floating_point() or y.is_complex())
        return _C._wrap_at(level, y) if differentiable else y

    outputs = tuple([lift(y) for y in _tuple(result)])
    ctx = function._node_class()
    ctx.needs_input_grad = needs = tuple([isinstance(x, Tensor) and x.requires_grad for x in args])
    with no_grad():
        function.setup_context(ctx, args, outputs if isinstance(result, tuple) else outputs[0])
    tangents = _tangents(args)
    if tangents is not None:

        def below(x):
            wrapped = _C._wrapped(x) if isinstance(x, Tensor) else None
            return wrapped[1] if wrapped is not None and wrapped[0] == level else x

        found = _C._below(partial(_push, function, ctx, tangents, below))
    if any(needs) and _C.is_grad_enabled():
        outputs = function._attach(ctx, args, outputs)
    if tangents is not None:
        _leave(outputs, found)
    return outputs if isinstance(result, tuple) else outputs[0]


def apply_with_tangents(function, args, kwargs):
    """Call a custom function on tensors that have tangents."""
    tangents = _tangents(args)
    with _set_fwd_grad_enabled(False):
        result, ctx = function._apply_here(args, kwargs)
    found = _push(function, ctx, tangents, lambda x: _C._primal(x) if isinstance(x, Tensor) else x)
    _leave(_tuple(result), found)
    return result


def _tangents(args):
    """The arguments' tangents, None where no argument has one."""
    if not _C._is_fwd_grad_enabled():
        return None
    tangents = tuple([_C._tangent(x) if isinstance(x, Tensor) else None for x in args])
    return tangents if any(t is not None for t in tangents) else None


def _push(function, ctx, tangents, below):
    """What the function's ``jvp`` makes of tangents."""
    saved = getattr(ctx, "_saved_for_forward", ())
    return _tuple(function.jvp(_ForwardContext(ctx, tuple([below(x) for x in saved])), *tangents))


def _leave(outputs, tangents):
    if len(outputs) != len(tangents):
        raise RuntimeError(
            f"the jvp of a custom function returned {len(tangents)} tangents for {len(outputs)} outputs"
        )
    for y, t in zip(outputs, tangents):
        if t is not None and isinstance(y, Tensor):
            _C._set_tangent(y, t)


class _ForwardContext:
    """The context as ``jvp`` sees it: what was saved for forward mode are its saved tensors."""

    def __init__(self, ctx, saved):
        self.__dict__.update(_ctx=ctx, saved_tensors=saved)

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)


def _batched(function, args, values, kwargs, level, info):
    """At a level of vmap: the function's own rule, or one made of its other parts."""
    from ..autograd.function import Function

    own_rule = function.vmap is not Function.vmap
    if own_rule and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overriden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid ambiguity."
        )
    if not own_rule and not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True."
        )
    in_dims = tuple([None if value is x else 0 for value, x in zip(values, args)])
    if not own_rule:
        made = _C._below(partial(_generated(function, in_dims, info).apply, *values, **kwargs))
        lifted = [_C._example_at(level, y, 0) if isinstance(y, Tensor) else y for y in _tuple(made)]
        return tuple(lifted) if isinstance(made, tuple) else lifted[0]
    answer = _C._below(partial(function.vmap, info, in_dims, *values, **kwargs))
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {function.__name__} to return a tuple of two: (output, out_dims)"
        )
    outputs, out_dims = answer
    several = isinstance(outputs, tuple)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(_tuple(outputs))
    lifted = [y if d is None else _C._example_at(level, y, d) for y, d in zip(_tuple(outputs), dims)]
    return tuple(lifted) if several else lifted[0]


def _generated(function, in_dims, info):
    """The function of a batch: each of its parts, of each example."""
    from ..autograd.function import Function
    from ._vmap import vmap

    def over(f, dims):
        return vmap(f, in_dims=dims, randomness=info.randomness)

    class Generated(Function):
        @staticmethod
        def forward(*args, **kwargs):
            return over(partial(function.forward, **kwargs), in_dims)(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.rest = [None if isinstance(x, Tensor) else x for x in inputs]
            ctx.several = isinstance(output, tuple)
            kept = [x for x in inputs if isinstance(x, Tensor)] + list(_tuple(output))
            ctx.save_for_backward(*kept)
            ctx.save_for_forward(*kept)

        @staticmethod
        def backward(ctx, *grads):
            inputs, outputs = _restored(ctx, in_dims)
            needs = ctx.needs_input_grad

            def of_example(inputs, outputs, grads):
                own = _plain_context(function, inputs, outputs if ctx.several else outputs[0], needs)
                found = _tuple(function.backward(own, *grads))
                # One gradient for each example, also where all examples share the argument: they are summed below.
                return tuple([x.new_zeros(x.shape) if g is None else g for g, x in zip(found, inputs) if _wanted(x)])

            wanted = [i for i, x in enumerate(inputs) if _wanted(x)]
            dims = (in_dims, (0,) * len(outputs), (0,) * len(grads))
            made = over(of_example, dims)(tuple(inputs), tuple(outputs), tuple(grads))
            answer = [None] * len(inputs)
            for i, g in zip(wanted, made):
                answer[i] = g if in_dims[i] == 0 else g.sum(0)
            return tuple(answer)

        @staticmethod
        def jvp(ctx, *tangents):
            inputs, outputs = _restored(ctx, in_dims)

            def of_example(inputs, outputs, tangents):
                own = _plain_context(function, inputs, outputs if ctx.several else outputs[0], ())
                own.saved_tensors = own._saved_for_forward
                return function.jvp(own, *tangents)

            given = tuple([None if t is None else d for t, d in zip(tangents, in_dims)])
            return over(of_example, (in_dims, (0,) * len(outputs), given))(tuple(inputs), tuple(outputs), tuple(tangents))

    Generated.__name__ = f"Vmapped{function.__name__}"
    return Generated


def _wanted(x):
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def _restored(ctx, in_dims):
    kept = list(ctx.saved_tensors)
    inputs = [kept.pop(0) if x is None and kept else x for x in ctx.rest]
    return inputs, kept


class _PlainContext:
    """A context that only keeps."""

    saved_tensors = _saved_for_forward = ()
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors):
        self._saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        raise RuntimeError("a function with generate_vmap_rule=True cannot mark inputs as dirty")

    def mark_non_differentiable(self, *tensors):
        pass

    def set_materialize_grads(self, value):
        pass


def _plain_context(function, inputs, output, needs):
    ctx = _PlainContext()
    ctx.needs_input_grad = needs
    function.setup_context(ctx, inputs, output)
    return ctx
