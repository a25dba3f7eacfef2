"""``Module``: parameters, buffers and child modules by name, and what is done to all of them at once."""

from collections import OrderedDict
from itertools import chain

from ..._tensor import Tensor
from ..parameter import Buffer, Parameter
from ._hooks import (
    HOOK_TABLES,
    CallState,
    HookMixin,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ._state import StateMixin, _IncompatibleKeys

__all__ = [
    "Module", "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
]  # fmt: skip

_IncompatibleKeys.__module__ = __name__


def _type_name(value):
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def _indented(text, by=2):
    """``text`` with every line but the first moved to the right."""
    return text.replace("\n", "\n" + " " * by)


def _zero(grad):
    """Fill a gradient with zeros and cut it from what it was computed from."""
    (grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)).zero_()


def _not_implemented(self, *input):
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(HookMixin, StateMixin):
    """Base of everything that has parameters: subclass it, assign parameters and modules, define ``forward``.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = Parameter(flambeau.ones(3))
    ...     def forward(self, x):
    ...         return x * self.factor
    """

    dump_patches = False
    call_super_init = False

    def __init__(self, *args, **kwargs):
        """Set up empty tables of parameters, buffers, modules and hooks."""
        if not self.call_super_init:
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
            if kwargs:
                name = next(iter(kwargs))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for table in HOOK_TABLES:
            state[table] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _not_implemented

    def __call__(self, *args, **kwargs):
        """Run ``forward``, and the hooks where there are any."""
        if CallState.hooked:
            return self._call_hooked(args, kwargs)
        return self.forward(*args, **kwargs)

    # ---- registration

    def _check_new_name(self, kind, name):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain ".", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t contain "."'
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_buffer(self, name, tensor, persistent=True):
        """Keep ``tensor`` under ``name``: it moves with the module and, if persistent, is saved with it."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_new_name("buffer", name)
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Keep ``param`` under ``name``: it is what optimizers are given. None keeps the name for later."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_new_name("parameter", name)
        if name not in self._parameters and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"cannot assign non-leaf Tensor to parameter '{name}': a parameter is a leaf; to have the model "
                    "compute a tensor from others, do so in forward"
                )
        self._parameters[name] = param

    def register_module(self, name, module):
        """Keep ``module`` as the child called ``name``."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_new_name("module", name)
        if name not in self._modules and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        self._modules[name] = module

    add_module = register_module

    # ---- attributes

    def __setattr__(self, name, value):
        state = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in state:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
            return
        if isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, but="_modules")
            self._check_new_name("module", name)
            state["_modules"][name] = value
            return
        if "_parameters" in state:
            if name in state["_parameters"]:
                if value is not None:
                    raise TypeError(
                        f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                    )
                state["_parameters"][name] = None
                return
            if name in state["_modules"]:
                if value is not None:
                    raise TypeError(
                        f"cannot assign '{_type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                    )
                state["_modules"][name] = None
                return
            if name in state["_buffers"] or isinstance(value, Buffer):
                self._set_buffer(name, value)
                return
        elif isinstance(value, Buffer):
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        super().__setattr__(name, value)

    def _set_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            self._forget(name, but="_buffers")
            self.register_buffer(name, value, value.persistent)
        else:
            self._buffers[name] = value

    def _forget(self, name, but):
        """Drop ``name`` wherever it is an attribute of another kind than the table ``but``."""
        state = self.__dict__
        state.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != but:
                state[table].pop(name, None)
        if but != "_buffers":
            state["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name):
        state = self.__dict__
        if "_modules" in state:
            if name in (table := state["_parameters"]):
                return table[name]
            if name in (table := state["_modules"]):
                return table[name]
            if name in (table := state["_buffers"]):
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        state = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if name in state.get(table, ()):
                del state[table][name]
                if table == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for table in HOOK_TABLES:
            if self.__dict__.setdefault(table, OrderedDict()):
                CallState.hooked = True
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- look-up by dotted name

    def get_submodule(self, target):
        """The module at the dotted path ``target``; itself for the empty one."""
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put ``module`` at the dotted path ``target``; with ``strict`` there must be one already."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_leaf(self, target, good, what):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        value = getattr(module, name)
        if not good(module, name, value):
            raise AttributeError(f"`{name}` is not {what}")
        return value

    def get_parameter(self, target):
        """The parameter at the dotted path ``target``."""
        return self._get_leaf(target, lambda _m, _n, value: isinstance(value, Parameter), "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer at the dotted path ``target``."""
        return self._get_leaf(target, lambda module, name, _v: name in module._buffers, "a buffer")

    # ---- walking

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Itself and every module below it, with dotted names, parents first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """Itself and every module below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self):
        """The modules assigned to this one, by name, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self):
        """The modules assigned to this one, each once."""
        for _, child in self.named_children():
            yield child

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for place, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{place}.{name}" if place else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """The parameters with their dotted names; a shared one appears once, unless told otherwise."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """The parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """The buffers with their dotted names; a shared one appears once, unless told otherwise."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ---- doing something to all

    def apply(self, fn):
        """Call ``fn(module)`` on every module below this one, children first, then on itself."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer by ``fn`` of it; parameters stay the same objects."""
        from ..._grad_mode import no_grad

        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                moved, grad = fn(param), None if param.grad is None else fn(param.grad)
            if moved.is_meta == param.is_meta:
                param.data = moved
            else:  # numbers and their absence cannot change places in one object
                param = self._parameters[name] = Parameter(moved, param.requires_grad)
            if grad is not None:
                param.grad = grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Move and cast in place: ``to(device, dtype, non_blocking)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=)``.

        Only floating and complex tensors are cast; all are moved.
        """
        from ._convert import parse_to, to_function

        return self._apply(to_function(*parse_to(args, kwargs)))

    def to_empty(self, *, device, recurse=True):
        """Move to ``device`` without copying: what the tensors hold afterwards is arbitrary."""
        from ... import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type):
        """Cast all parameters and buffers, integer ones included."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        """Cast the floating tensors to float32."""
        from ... import float32

        return self._cast(float32)

    def double(self):
        """Cast the floating tensors to float64."""
        from ... import float64

        return self._cast(float64)

    def half(self):
        """Cast the floating tensors to float16."""
        from ... import float16

        return self._cast(float16)

    def bfloat16(self):
        """Cast the floating tensors to bfloat16."""
        from ... import bfloat16

        return self._cast(bfloat16)

    def cpu(self):
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move to a CUDA device; a clear error where there is none."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self):
        """Move the tensors into memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode=True):
        """Set training mode here and below: what dropout and normalisation look at."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self):
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Say whether the parameters take part in differentiation."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or fill them with zeros."""
        modules = [self]  # grows while it is walked; names and order, which parameters() is for, do not matter here
        seen = {self}
        for module in modules:
            state = module.__dict__
            for param in state["_parameters"].values():
                if param is None or (grad := param.grad) is None:
                    continue
                if set_to_none:
                    param.grad = None
                else:
                    _zero(grad)
            for child in state["_modules"].values():
                if child is not None and child not in seen:
                    seen.add(child)
                    modules.append(child)

    def compile(self, *args, **kwargs):
        """Accepted for PyTorch's sake: the module goes on running eagerly, and says so once."""
        from warnings import warn

        warn("flambeau does not compile yet: the module runs eagerly, with the same results", stacklevel=2)

    # ---- printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the parentheses of the printed form; a subclass overrides it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(child))}" for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join(chain(lines, children))
        return f"{self._get_name()}(\n  {body}\n)"
