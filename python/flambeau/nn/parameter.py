"""``Parameter`` and ``Buffer``: tensors that a module registers when they are assigned to it."""

from collections import OrderedDict

from .. import _C
from .._tensor import Tensor

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


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


class _Uninitialized:
    """What tensors without a shape share: nothing can be computed with them until they are given one."""

    cls_to_become = None

    def materialize(self, shape, device=None, dtype=None):
        """Give it a shape (memory is not set); it becomes an ordinary parameter or buffer, the same object."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = _C.empty(tuple(shape), device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """Raises: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        """Raises: there is no memory yet."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer: call `forward` first")

    def __repr__(self, *, tensor_contents=None):
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._made_with(), device=self.data.device, dtype=self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, proto):
        return _uninitialized, (type(self), self._made_with(), self.data.device, self.data.dtype)


def _uninitialized(cls, args, device, dtype):
    return cls(*args, device=device, dtype=dtype)


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter without a shape, for modules that learn it from their first input."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)

    def _made_with(self):
        return (self.requires_grad,)


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer without a shape, for modules that learn it from their first input."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def _made_with(self):
        return (self.requires_grad,)


def is_lazy(param):
    """Whether it has no shape yet."""
    return isinstance(param, _Uninitialized)
