"""Checkpointing: what lies between a function's inputs and outputs is computed again in backward instead of kept.

>>> import flambeau as torch
>>> from flambeau.utils.checkpoint import checkpoint
>>> x = torch.ones(2, requires_grad=True)
>>> checkpoint(lambda x: (x * x).sin(), x, use_reentrant=False).sum().backward()
>>> x.grad
tensor([1.0806, 1.0806])
"""

from contextlib import nullcontext
from warnings import warn

from .. import _C, random
from .._grad_mode import enable_grad
from .._tensor import Tensor
from ..amp import autocast
from ..autograd import Function, grad

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "checkpoint", "checkpoint_sequential", "noop_context_fn",
    "set_checkpoint_early_stop",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """What was computed again differs from what was computed first."""


class CheckpointPolicy:
    """Names of choices for selective checkpointing, which flambeau does not have: it computes all again."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


def noop_context_fn():
    """Two blocks without effect."""
    return nullcontext(), nullcontext()


class set_checkpoint_early_stop:
    """A block in which computing again may stop once all is there; it never does, which is slower and right."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def _split(value, tensors):
    """``value`` with its tensors taken out into a list, in whatever containers they are."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if type(value) in (list, tuple):
        return type(value)(_split(v, tensors) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_split(v, tensors) for v in value))
    if type(value) is dict:
        return {k: _split(v, tensors) for k, v in value.items()}
    return value


class _Place(int):
    """Where a tensor was."""


def _fill(value, tensors):
    """The reverse of ``_split``."""
    if isinstance(value, _Place):
        return tensors[value]
    if type(value) in (list, tuple):
        return type(value)(_fill(v, tensors) for v in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_fill(v, tensors) for v in value))
    if type(value) is dict:
        return {k: _fill(v, tensors) for k, v in value.items()}
    return value


def _leaves(outputs, known):
    """Leaves that require grad on which ``outputs`` depend, apart from those that are known."""
    found, seen = [], {}  # the nodes stay in `seen`: a freed one's id would be given to another
    stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
    known = {id(t) for t in known}
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor):
            if id(variable) not in known:
                known.add(id(variable))
                found.append(variable)
            continue
        stack.extend(next for next, _ in node.next_functions if next is not None)
    return found


class _Run:
    """A function with what it needs to be run a second time as it was run first."""

    def __init__(self, function, form, context_fn, preserve_rng_state):
        self.function, self.form = function, form
        self.contexts = context_fn()
        self.rng = random.get_rng_state() if preserve_rng_state else None
        self.autocast = (_C.is_autocast_enabled("cpu"), _C.get_autocast_dtype("cpu"), _C.is_autocast_cache_enabled())

    def first(self, tensors):
        """The function's outputs."""
        with self.contexts[0]:
            args, kwargs = _fill(self.form, tensors)
            return self.function(*args, **kwargs)

    def again(self, tensors):
        """The function's outputs, under the settings of the first run."""
        enabled, dtype, cache = self.autocast
        with random.fork_rng(enabled=self.rng is not None), autocast("cpu", dtype, enabled, cache), self.contexts[1]:
            if self.rng is not None:
                random.set_rng_state(self.rng)
            args, kwargs = _fill(self.form, tensors)
            return self.function(*args, **kwargs)


class CheckpointFunction(Function):
    """Runs a function without a record; backward runs it again with one.

    The leaves that the function uses (parameters, mostly) are inputs like its arguments, so that gradients reach them
    as they would without a checkpoint.
    """

    @staticmethod
    def forward(ctx, run, count, results, *tensors):
        """The tensors among the results, which are there already."""
        ctx.run, ctx.count = run, count
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        return tuple(t.detach() for t in results)

    @staticmethod
    def backward(ctx, *grads):
        """Gradients of the arguments and of the leaves."""
        inputs = ctx.saved_tensors
        again = _C.is_grad_enabled()
        with enable_grad():
            arguments = list(inputs[: ctx.count])
            if not again:
                arguments = [t.detach().requires_grad_(t.requires_grad) for t in arguments]
            outputs = []
            _split(ctx.run.again(arguments), outputs)
            if len(outputs) != len(grads):
                raise CheckpointError(
                    f"torch.utils.checkpoint: the function gave {len(grads)} tensors in forward and {len(outputs)} when it "
                    "was run again in backward"
                )
            pairs = [(o, g) for o, g in zip(outputs, grads) if g is not None and o.requires_grad]
            wanted = [*arguments, *inputs[ctx.count :]]
            places = [i for i, t in enumerate(wanted) if t.requires_grad]
            result = [None] * len(wanted)
            if pairs and places:
                found = grad(
                    [o for o, _ in pairs], [wanted[i] for i in places], [g for _, g in pairs], allow_unused=True,
                    create_graph=again,
                )  # fmt: skip
                for i, g in zip(places, found):
                    result[i] = g
        return None, None, None, *result


def checkpoint(
    function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False,
    early_stop=True, **kwargs,
):  # fmt: skip
    """``function(*args, **kwargs)``, whose intermediate results are not kept but computed again in backward.

    Random draws and autocast are as they were the first time, unless ``preserve_rng_state=False``. Both values of
    ``use_reentrant`` give the same here; tensors that the function takes from around it must be leaves.
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended.",
            stacklevel=2,
        )
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if not _C.is_grad_enabled():
        with context_fn()[0]:
            return function(*args, **kwargs)
    tensors = []
    run = _Run(function, _split((args, kwargs), tensors), context_fn, preserve)
    return _checkpointed(run, tensors)


def _checkpointed(run, tensors):
    with enable_grad():
        arguments = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
        result = run.first(arguments)
    outputs = []
    form = _split(result, outputs)
    leaves = _leaves(outputs, arguments)
    results = [t.detach() for t in outputs]
    differentiable = [t.requires_grad for t in outputs]
    del result, outputs
    given = CheckpointFunction.apply(run, len(tensors), results, *tensors, *leaves)
    given = given if isinstance(given, tuple) else (given,)
    return _fill(form, [g if d else g.detach() for g, d in zip(given, differentiable)])


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A ``Sequential`` (or list) in ``segments`` parts, each checkpointed but the last."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(start, end):
        def forward(input):
            for function in functions[start : end + 1]:
                input = function(input)
            return input

        return forward

    size = len(functions) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(part(start, end), input, use_reentrant=bool(use_reentrant), preserve_rng_state=preserve)
    return part(end + 1, len(functions) - 1)(input)
