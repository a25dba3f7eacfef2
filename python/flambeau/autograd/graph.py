"""The recorded graph: its nodes, hooks on them, and what they save.

>>> import flambeau as torch
>>> x = torch.ones(2, requires_grad=True)
>>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.from_numpy):
...     y = x.exp()
>>> y.sum().backward()
>>> x.grad
tensor([2.7183, 2.7183])
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from contextlib import contextmanager
from threading import Lock
from weakref import WeakKeyDictionary, ref

from .. import _C
from .._tensor import Tensor

__all__ = [
    "saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors", "Node", "GradientEdge", "get_gradient_edge", "increment_version", "queue_callback",
    "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


class Node(ABC):
    """A step of the graph: an operation that was recorded, or the accumulation of a leaf's gradient."""

    @abstractmethod
    def name(self):
        """The operation's name, such as ``MulBackward0``."""

    @property
    @abstractmethod
    def next_functions(self):
        """Where the gradients of its inputs go: pairs of a node (or None) and the number of that node's output."""

    @property
    @abstractmethod
    def metadata(self):
        """A dictionary for notes, kept with the node."""

    @abstractmethod
    def register_hook(self, fn):
        """Have ``fn(grad_inputs, grad_outputs)`` called after the node; a tuple that it returns replaces ``grad_inputs``."""

    @abstractmethod
    def register_prehook(self, fn):
        """Have ``fn(grad_outputs)`` called before the node; a tuple that it returns replaces them."""

    @classmethod
    def __subclasshook__(cls, subclass):
        if cls is Node and issubclass(subclass, (_C.Node, _C._FunctionNode)):
            return True
        return NotImplemented


class GradientEdge(namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))):
    """A place in the graph where a gradient passes: output ``output_nr`` of ``node``.

    Stands for a tensor in ``backward`` and ``grad``, without keeping the tensor's memory.
    """

    __slots__ = ()


def get_gradient_edge(tensor):
    """The place in the graph that the gradient of ``tensor`` goes to."""
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor):
    """Count a write to a tensor (or to several), so that backward refuses to use what it had saved of it."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(one)


def queue_callback(callback):
    """Have ``callback()`` called when the backward that runs now is done."""
    _C._queue_callback(callback)


def set_warn_on_accumulate_grad_stream_mismatch(enabled):
    """Has no effect: flambeau has no streams."""


class saved_tensors_hooks:
    """A block in which ``pack_hook(tensor)`` makes what is kept of tensors saved for backward.

    ``unpack_hook`` makes of it, in backward, a tensor of the same values. Of nested blocks the inner one counts. The
    hooks must not change the tensors that they are given.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_):
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A block in which tensors saved for backward are copied to the CPU, and back to their device in backward.

    ``pin_memory`` has no effect on this backend.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            return tensor.device, tensor.detach().to("cpu", copy=True)

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message):
    """A block in which :class:`saved_tensors_hooks` is a ``RuntimeError`` with this text."""
    before = _C._saved_tensors_hooks_get_disabled_error_message()
    _C._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if before is None:
            _C._saved_tensors_hooks_enable()
        else:
            _C._saved_tensors_hooks_disable(before)


class _MultiHandle:
    """Takes several hooks away at once."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _place(tensor):
    """The node that a tensor's (or edge's) gradient goes to, and the number of the node's output."""
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set: the tensor does not require grad")
    return _C._gradient_edge(tensor)[:2]


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Have ``fn`` called in each backward that gives gradients to ``tensors``.

    With ``mode="all"``, ``fn(grads)`` is called once, when all have been computed that this backward computes: a list
    with None for the others. With ``"any"``, ``fn(grad)`` is called with the first.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    places = [_place(tensor) for tensor in tensors]
    lock = Lock()
    runs = WeakKeyDictionary()  # what each backward that runs has seen

    def hook_of(index):
        def hook(grad):
            with lock:
                run = runs.setdefault(_C._backward_run(), {"left": None, "grads": [None] * len(places)})
                if run["left"] is None:
                    run["left"] = 1 if mode == "any" else sum(_C._will_engine_execute_node(node) for node, _ in places)
                run["left"] -= 1
                run["grads"][index] = grad
                ready = run["left"] == 0
            if ready:
                fn(grad if mode == "any" else run["grads"])

        return hook

    handles = []
    for index, tensor in enumerate(tensors):
        hook = hook_of(index)
        if isinstance(tensor, GradientEdge):
            node, number = tensor.node, tensor.output_nr

            def before(grads, hook=hook, number=number):
                if grads[number] is not None:
                    hook(grads[number])

            handles.append(node.register_prehook(before))
        else:
            handles.append(tensor.register_hook(hook))
    return _MultiHandle(handles)


class _Handle:
    """Names one saved tensor."""

    __slots__ = ("__weakref__",)


class _MutationContext:
    """What :func:`allow_mutation_on_saved_tensors` keeps: the originals, and copies of those that were changed."""

    def __init__(self):
        self.active = True
        self.cloned, self.original = WeakKeyDictionary(), WeakKeyDictionary()
        self.by_storage = {}

    def clear(self):
        """Forget all."""
        self.active = False
        self.cloned.clear()
        self.original.clear()
        self.by_storage.clear()

    def pack(self, tensor):
        """A handle for a tensor."""
        handle = _Handle()
        self.original[handle] = tensor.detach()
        key = tensor.untyped_storage().data_ptr()
        handles = self.by_storage.setdefault(key, [])
        handles[:] = [h for h in handles if h() is not None]
        handles.append(ref(handle))
        return handle

    def unpack(self, handle):
        """The values that it had."""
        if not self.active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return self.cloned[handle] if handle in self.cloned else self.original[handle]

    def before_write(self, tensor):
        """Copy what is saved of the tensor's memory."""
        if tensor.is_meta:
            return
        for weak in self.by_storage.pop(tensor.untyped_storage().data_ptr(), ()):
            handle = weak()
            if handle is not None and handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()


_mutation_contexts = []


@contextmanager
def allow_mutation_on_saved_tensors():
    """A block in which tensors saved for backward may be changed in place: what backward needs is copied before.

    The backward must run inside the block. Gives an object with the copies (``cloned``) and the tensors that were not
    changed (``original``).
    """
    if _mutation_contexts:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        _mutation_contexts.append(context)
        _C._push_write_hook(context.before_write)
        try:
            yield context
        finally:
            _C._pop_write_hook()
            _mutation_contexts.remove(context)
            context.clear()
