"""Functions that pickled tensors and parameters name: they build the object again from its parts."""

from . import _C


def _set_state(target, state):
    """Attributes that a pickled tensor carried: a dictionary, or a pair of dictionaries with slots."""
    state, slots = state if isinstance(state, tuple) else (state, None)
    for part in (slots, state):
        for name, value in (part or {}).items():
            if name.startswith("__"):
                raise ValueError(f"a pickled tensor has the attribute '{name}', which no program sets by hand")
            setattr(target, name, value)
    return target


class _TypedBytes:
    """A storage and the dtype that its class stands for (None: plain bytes), on the way into a tensor."""

    __slots__ = ("untyped", "dtype")

    def __init__(self, untyped, dtype):
        self.untyped = untyped
        self.dtype = dtype


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A view of ``storage``."""
    return _C._tensor_from_storage(storage.untyped, storage_offset, tuple(size), tuple(stride), storage.dtype)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A view of ``storage`` that requires grad or not: how every file names its tensors."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """As the second version, for dtypes that have no storage class: the storage holds plain bytes."""
    tensor = _C._tensor_from_storage(storage.untyped, storage_offset, tuple(size), tuple(stride), dtype)
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A parameter that shares the memory of ``data``."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """A parameter with the attributes that it had."""
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor without numbers."""
    from . import empty_strided

    return empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a subclass, with the attributes that it had."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return made
    return _set_state(made, state)
