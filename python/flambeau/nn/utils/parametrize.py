"""Parameters that are functions of others: ``register_parametrization`` puts a module in front of a parameter."""

import collections.abc
from contextlib import contextmanager
from copy import deepcopy

from ..._grad_mode import no_grad
from ..._tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip

_cache_enabled = 0
_cache = {}


@contextmanager
def cached():
    """Inside, each parametrized tensor is computed once."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module, name, tensor):
    register = module.register_parameter if isinstance(tensor, Parameter) else module.register_buffer
    register(name, tensor)


def _check_alike(what, new, dtype, shape):
    """``ValueError`` where a parametrization changes what the tensor is."""
    for kind, was, now in (("dtype", dtype, new.dtype), ("shape", tuple(shape), tuple(new.shape))):
        if was != now:
            raise ValueError(
                f"Registering a parametrization may not change the {kind} of the tensor, unless the `unsafe` flag is "
                f"enabled: {what} gives {now} for {was}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of a tensor, first to last, and the tensors (``original``, or ``original0``, ...) before them."""

    def __init__(self, modules, original, unsafe=False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        dtype, shape, new = original.dtype, original.shape, original
        with no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, collections.abc.Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if dtype != new.dtype or original.device != new.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype or device: it gives "
                    f"{new.dtype} on {new.device} for {dtype} on {original.device}"
                )
            with no_grad():
                original.set_(new.detach())
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            found = self()
            if not isinstance(found, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
            _check_alike("the parametrization", found, dtype, shape)

    def right_inverse(self, value):
        """Set the original tensors so that the result is ``value``."""
        with no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            names, values = ["original"], [value]
            if not self.is_tensor:
                names = [f"original{i}" for i in range(self.ntensors)]
                if not isinstance(value, collections.abc.Sequence) or len(value) != self.ntensors:
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got {value!r}"
                    )
                values = value
            for name, tensor in zip(names, values):
                if not isinstance(tensor, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(tensor).__name__}")
                mine = getattr(self, name)
                if tensor.dtype != mine.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {tensor.dtype} while `{name}` has dtype "
                        f"{mine.dtype}"
                    )
                mine.set_(tensor.detach())

    def forward(self):
        """The parametrized tensor."""
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in list(self)[1:]:
            x = module(x)
        return x


def _inject_class(module):
    """Give the module a class of its own, so that it can have properties."""
    cls = type(module)

    def copied(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = memo[id(self)] = type(self).__new__(type(self))
        replica.__dict__ = deepcopy(self.__dict__, memo)
        return replica

    def getstate(self):
        raise RuntimeError(
            "a parametrized module cannot be pickled: save its state_dict() and parametrize a new one before loading"
        )

    members = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, name):
    def get(self):
        make = self.parametrizations[name]
        if not _cache_enabled:
            return make()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = make()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make ``module.tensor_name`` the result of ``parametrization`` on what it was; several follow one another.

    ``unsafe`` skips the check that shape and dtype stay. Where the parametrization has ``right_inverse``, the tensor
    can be assigned to.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            then = parametrization(now)
            if not isinstance(then, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(then).__name__}.")
            _check_alike("the parametrization", then, now.dtype, now.shape)
            if hasattr(parametrization, "right_inverse"):
                try:
                    back = parametrization.right_inverse(then)
                except NotImplementedError:
                    back = now
                if not isinstance(back, Tensor):
                    raise ValueError(
                        f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
                    )
                _check_alike("right_inverse", back, now.dtype, now.shape)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    module.parametrizations[tensor_name] = made
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module has parametrizations, or one on a tensor."""
    table = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(table, ModuleDict):
        return False
    return len(table) > 0 if tensor_name is None else tensor_name in table


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make ``module.tensor_name`` an ordinary tensor: its present value, or what it was before."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name).detach())
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class of the module, its own one for parametrizations aside."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give ``to_module`` the parametrizations, and the tensors before them, of ``from_module``."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        theirs, ours = from_module.parametrizations[name], to_module.parametrizations[name]
        parts = ["original"] if theirs.is_tensor else [f"original{i}" for i in range(theirs.ntensors)]
        for part in parts:
            setattr(ours, part, getattr(theirs, part))
    return to_module
