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
from weakref import WeakKeyDictionary, ref

from .. import _C, random
from .._grad_mode import enable_grad, no_grad
from .._tensor import Tensor
from ..amp import autocast
from ..autograd import Function, backward
from ..autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "check_backward_validity",
    "checkpoint", "checkpoint_sequential", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """What was computed again differs from what was computed first."""


class CheckpointPolicy:
    """Names of choices for selective checkpointing, which flambeau does not have: it computes all again."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


class DefaultDeviceType:
    """The device whose random state is kept besides the CPU's; there is none here."""

    _device_type = "cuda"

    @staticmethod
    def set_device_type(device="cuda"):
        """Name the device."""
        DefaultDeviceType._device_type = device

    @staticmethod
    def get_device_type():
        """The device's name."""
        return DefaultDeviceType._device_type


def get_device_states(*args):
    """Numbers and random states of the devices, other than the CPU, that tensors among ``args`` are on: none here."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """The reverse of :func:`get_device_states`."""


def noop_context_fn():
    """Two blocks without effect."""
    return nullcontext(), nullcontext()


class _Setting:
    """A setting for a block, None leaving the choice to the call."""

    value = None

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        self.before, type(self).value = type(self).value, self.enable

    def __exit__(self, *_):
        type(self).value = self.before


class set_checkpoint_early_stop(_Setting):
    """A block in which computing again stops, or does not, as soon as all that backward needs is there."""

    value = None


class set_checkpoint_debug_enabled(_Setting):
    """A block in which errors of checkpoints show, or do not, where each tensor was saved."""

    value = None


def detach_variable(inputs):
    """The same values without history, in a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs):
    """Warn where no gradient will flow."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)


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


class _State:
    """Random state and autocast as they are now, to be had again."""

    def __init__(self, preserve_rng_state):
        self.rng = random.get_rng_state() if preserve_rng_state else None
        self.autocast = (_C.is_autocast_enabled("cpu"), _C.get_autocast_dtype("cpu"), _C.is_autocast_cache_enabled())

    def again(self, function):
        """Call the function in that state."""
        enabled, dtype, cache = self.autocast
        with random.fork_rng(enabled=self.rng is not None), autocast("cpu", dtype, enabled, cache):
            if self.rng is not None:
                random.set_rng_state(self.rng)
            return function()


class CheckpointFunction(Function):
    """Runs a function without a record; backward runs it again with one, and a backward inside (``use_reentrant``)."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """The function's results."""
        check_backward_validity(args)
        ctx.run_function, ctx.state = run_function, _State(preserve_rng_state)
        ctx.tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.needs = [x.requires_grad for x in args if isinstance(x, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensors])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Gradients of the arguments; those of what the function uses from around it are added to the leaves."""
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). Either set use_reentrant=False, or call .backward() without `inputs`."
            )
        args = list(ctx.others)
        for i, tensor, needs in zip(ctx.tensors, ctx.saved_tensors, ctx.needs):
            args[i] = tensor.detach().requires_grad_(needs)
        with enable_grad():
            outputs = ctx.state.again(lambda: ctx.run_function(*args))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(y, g) for y, g in zip(outputs, grads) if isinstance(y, Tensor) and y.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([y for y, _ in pairs], [g for _, g in pairs])
        return None, None, *[x.grad if isinstance(x, Tensor) else None for x in args]


class _Holder:
    """Stands in the graph for a tensor that will be computed again."""

    __slots__ = ("__weakref__",)


class _Stop(Exception):
    """All is there: leaves the function that is run again."""

    def __init__(self, frame):
        self.frame = frame


class _SaveInputs(Function):
    """Saves tensors as any operation would, under the hooks that are in force: an outer checkpoint takes them over."""

    @staticmethod
    def forward(ctx, dummy, *tensors):
        ctx.save_for_backward(*tensors)
        return dummy.view_as(dummy)

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("a checkpoint's inputs have no derivative of their own")


def _looks(tensor):
    """What two runs must have in common."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _lines():
    """Where a tensor is saved: the user's line, and the call above it."""
    from os.path import abspath, dirname, sep
    from traceback import extract_stack

    package = dirname(dirname(abspath(__file__))) + sep  # a user's own folder may have any name, "flambeau" too
    frames = [f for f in extract_stack() if not f.filename.startswith(package)]
    return "; ".join(f"{f.filename}:{f.lineno} {f.line}" for f in frames[-2:])


class _Frame:
    """A checkpointed call: what it needs to run again, and which tensors its graph will ask for.

    The graph keeps a :class:`_Holder` for each tensor that it would have saved, by their order. The first that is asked
    for in a backward has the function run again, in the same state, with hooks that put each tensor that is saved beside
    its holder; a tensor is handed out once, and what is not asked for goes when that backward ends.
    """

    def __init__(self, function, form, tensors, contexts, options):
        preserve, self.looks, self.debug, self.early_stop = options
        self.function, self.form, self.again_context = function, form, contexts[1]
        self.state = _State(preserve)
        self.needs = [t.requires_grad for t in tensors]
        self.keeper = _SaveInputs.apply(_C.empty(0, requires_grad=True), *tensors)
        self.holders, self.metadata, self.lines, self.lines_again = [], [], [], []
        self.runs = WeakKeyDictionary()

    def pack(self, tensor):
        """In the first run."""
        holder = _Holder()
        self.holders.append(ref(holder))
        if self.looks is not None:
            self.metadata.append(self.looks(tensor))
        if self.debug:
            self.lines.append(_lines())
        return holder

    def unpack(self, holder):
        """The tensor, computed again where it is not there."""
        found = self.runs.setdefault(_C._backward_run() or _Holder(), WeakKeyDictionary())
        if holder not in found:
            self.run_again(found)
        tensor = found.pop(holder, None)
        if tensor is None:
            self.fail(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {self.count}."
            )
        return tensor

    def run_again(self, found):
        """Run the function once more and put what it saves into ``found``."""
        self.count, self.lines_again, different = 0, [], []

        def pack(tensor):
            at, self.count = self.count, self.count + 1
            tensor = tensor.detach()
            if self.debug:
                self.lines_again.append(_lines())
            if at >= len(self.holders):
                self.fail(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    "forward pass."
                )
            if self.looks is not None and (looks := self.looks(tensor)) != self.metadata[at]:
                different.append((at, self.metadata[at], looks))
            holder = self.holders[at]()
            if holder is not None:
                found[holder] = tensor
            if self.early_stop and self.count == len(self.holders):
                raise _Stop(self)
            return tensor

        saved = self.keeper.grad_fn.saved_tensors
        tensors = [t.detach().requires_grad_(needs) for t, needs in zip(saved, self.needs)]
        args, kwargs = _fill(self.form, tensors)
        try:
            with self.again_context, enable_grad(), saved_tensors_hooks(pack, lambda tensor: tensor):
                self.state.again(lambda: self.function(*args, **kwargs))
        except _Stop as stop:
            if stop.frame is not self:
                raise
        if self.count == len(self.holders) and different:
            lines = [
                f"tensor at position {at}:\nsaved metadata: {first}\nrecomputed metadata: {again}"
                for at, first, again in different
            ]
            self.fail(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                "the forward pass.\n" + "\n".join(lines)
            )

    def fail(self, text):
        """Raise the error, with where the tensors were saved."""
        if not self.debug:
            raise CheckpointError(text + "\n\nWith debug=True the error says where each tensor was saved.")
        for title, lines in (("original forward", self.lines), ("recomputation", self.lines_again)):
            text += f"\n\nTensors saved during the {title}:\n"
            text += "\n".join(f"  {at}: {line}" for at, line in enumerate(lines))
        raise CheckpointError(text)


_LOOKS = {"default": _looks, "none": None}


def checkpoint(
    function=None, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False,
    early_stop=True, respect_saved_tensors_hooks=None, **kwargs,
):  # fmt: skip
    """``function(*args, **kwargs)``, whose intermediate results are not kept but computed again in backward.

    Random draws and autocast are as they were the first time, unless ``preserve_rng_state=False``. With
    ``use_reentrant=False`` (the form to use) all of autograd works: ``grad``, ``inputs=``, derivatives of derivatives,
    checkpoints within checkpoints, tensors that the function takes from around it; computing again stops when all is there
    (``early_stop``); ``context_fn`` gives two blocks, for the first run and the later ones; a function that saves other
    tensors the second time is a :class:`CheckpointError` (shapes and dtypes are compared unless
    ``determinism_check="none"``), which with ``debug`` says where tensors were saved. ``use_reentrant=True`` runs a backward
    within backward: an argument must require grad. Without ``function``, a decorator.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if function is None:
        options = dict(
            use_reentrant=use_reentrant, context_fn=context_fn, determinism_check=determinism_check, debug=debug,
            early_stop=early_stop, preserve_rng_state=preserve,
        )  # fmt: skip
        return lambda function: _decorated(function, options)
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended; without it, it is True.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug or respect_saved_tensors_hooks:
            raise ValueError(
                "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when "
                "use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in _LOOKS:
        raise ValueError(f"determinism_check should be one of {list(_LOOKS)}, but got {determinism_check}")
    contexts = context_fn()
    if not _C.is_grad_enabled():
        with contexts[0]:
            return function(*args, **kwargs)
    debug = debug if set_checkpoint_debug_enabled.value is None else set_checkpoint_debug_enabled.value
    stop = early_stop if set_checkpoint_early_stop.value is None else set_checkpoint_early_stop.value
    tensors = []
    form = _split((args, kwargs), tensors)
    frame = _Frame(function, form, tensors, contexts, (preserve, _LOOKS[determinism_check], debug, stop))
    with contexts[0], saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def _decorated(function, options):
    from functools import wraps

    @wraps(function)
    def wrapper(*args, **kwargs):
        return checkpoint(function, *args, **options, **kwargs)

    return wrapper


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A ``Sequential`` (or list) in ``segments`` parts, each checkpointed but the last."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended; without it, it is True.",
            stacklevel=2,
        )
        use_reentrant = True
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
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end + 1, len(functions) - 1)(input)
