"""``Optimizer``: parameters in groups with their settings, the state that a method keeps of each, hooks."""

from collections import OrderedDict, defaultdict

from .. import _C
from .._grad_mode import enable_grad, set_grad_enabled
from .._tensor import Tensor
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"]

_global_step_pre_hooks = OrderedDict()
_global_step_post_hooks = OrderedDict()

_HOOK_TABLES = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip

_UNORDERED = (
    "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
    "change between runs. Please use a list instead."
)


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _add(table, hook, prepend=False):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return _add(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return _add(_global_step_post_hooks, hook)


def _hooked(step):
    """``step`` with the hooks around it."""
    from functools import wraps

    @wraps(step)
    def wrapper(self, *args, **kwargs):
        for hook in (*_global_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            given = hook(self, args, kwargs)
            if given is not None:
                if not (isinstance(given, tuple) and len(given) == 2):
                    raise RuntimeError(
                        f"{step.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got {given}."
                    )
                args, kwargs = given
        out = step(self, *args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_step_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    wrapper.hooked = True
    return wrapper


def number(value):
    """A setting as a plain number; a tensor of one element counts."""
    return value.item() if isinstance(value, Tensor) else value


def run_closure(closure):
    """The loss that ``closure`` computes, with recording on; None without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def check_common(lr, foreach=None, fused=None, differentiable=False):
    """What all optimizers ask of their settings."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")


def check_not_negative(**settings):
    """``ValueError`` for the first of these settings that is less than zero, or NaN."""
    for name, value in settings.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas):
    """What decays of running means have to be."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


class Optimizer:
    """Base of all optimizers: a subclass gives its default settings and a ``step``.

    ``params`` holds tensors, pairs of a name and a tensor, or dictionaries: groups with settings of their own.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _hooked(step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        for table in _HOOK_TABLES:
            setattr(self, table, OrderedDict())
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        if isinstance(params, (set, frozenset)):
            from warnings import warn

            warn(f"{_UNORDERED} This will be an error in a future release.", stacklevel=3)
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ---- groups

    def add_param_group(self, param_group):
        """Add a group: a dictionary of ``params`` and of the settings in which it differs from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(_UNORDERED)
        params = list(params)
        named = [isinstance(param, tuple) for param in params]
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in params]
            params = [param for _, param in params]
        param_group["params"] = params
        self._check_params(params)
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names: this group differs from the first one"
            )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        known = {id(param) for group in self.param_groups for param in group["params"]}
        if any(id(param) in known for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_params(self, params):
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(param) for param in params}) < len(params):
            from warnings import warn

            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=4,
            )

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                elif grad.grad_fn is not None:
                    grad.detach_().zero_()
                else:
                    grad.requires_grad_(False).zero_()

    def step(self, closure=None):
        """Change the parameters once; ``closure`` computes the loss again where a method needs that."""
        raise NotImplementedError(f"{type(self).__name__} has no step method")

    def _recording(self):
        """The grad mode of a step: off, unless it is itself to be differentiated."""
        return set_grad_enabled(self.defaults.get("differentiable", False))

    # ---- hooks

    def register_step_pre_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; what it returns replaces the dictionary."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` before loading; what it returns replaces the dictionary."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state out and in

    def state_dict(self):
        """State and groups as plain dictionaries, with parameters named by their number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        out = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            given = hook(self, out)
            out = out if given is None else given
        return out

    def load_state_dict(self, state_dict):
        """Take back what ``state_dict`` gave; tensors of state are cast to their parameters' dtype and device."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            given = hook(self, state_dict)
            state_dict = state_dict if given is None else given
        from copy import deepcopy

        mine, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(mine) != len(saved):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)}, the optimizer has {len(mine)}"
            )
        for i, (ours, theirs) in enumerate(zip(mine, saved)):
            if len(ours["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i} has {len(theirs['params'])} parameters there, {len(ours['params'])} here"
                )
        by_number = {
            key: param for ours, theirs in zip(mine, saved) for key, param in zip(theirs["params"], ours["params"])
        }
        groups_of = {key: group for group in saved for key in group["params"]}
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                state[by_number[key]] = _cast(by_number[key], value, groups_of[key])
            else:
                state[key] = value
        for ours, theirs in zip(mine, saved):
            theirs["params"] = ours["params"]
            if "param_names" in ours:
                theirs["param_names"] = ours["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _cast(param, value, group, key=None):
    """``value`` of a saved state as ``param`` needs it."""
    if isinstance(value, Tensor):
        if key == "step":
            moved = group.get("capturable") or group.get("fused")
            return value.to(dtype=_C.float32, device=param.device) if moved else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {name: _cast(param, item, group, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, item, group) for item in value)
    return value
