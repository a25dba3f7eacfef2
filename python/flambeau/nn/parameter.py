"""``Parameter`` and ``Buffer``: tensors that a module registers when they are assigned to it."""

from collections import OrderedDict

from .. import _C
from .._tensor import Tensor

__all__ = ["Parameter", "Buffer"]


class Parameter(Tensor):
    """A tensor that is a parameter of the module it is assigned to; it requires grad unless told otherwise.

    It shares the memory of ``data``.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            from .. import empty

            data = empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"a Parameter is made of a tensor, got {type(data).__name__}")
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self, *, tensor_contents=None):
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    def __reduce_ex__(self, proto):
        from .. import _utils

        hooks = OrderedDict()  # a place that the format has for hooks, which are not saved
        state = dict(self.__dict__)
        if state:
            return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, hooks, state)
        return _utils._rebuild_parameter, (self.data, self.requires_grad, hooks)


_C._set_tensor_class(Tensor, Parameter)  # lets the native side know the commonest subclass at a glance


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to, saved with it if ``persistent``."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            from .. import empty

            data = empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
