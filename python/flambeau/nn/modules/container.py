"""Modules that hold modules or parameters: in a chain, a list or a dictionary."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from operator import index as as_index

from ..._tensor import Tensor
from ..parameter import Parameter
from .module import Module, _indented

__all__ = ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _position(index, length):
    """``index`` as a position from the front."""
    index = as_index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Row(Module):
    """What Sequential and ModuleList share: children by number."""

    def _key(self, index):
        return list(self._modules)[_position(index, len(self))]

    def _renumber(self):
        """Name the children 0, 1, 2, ... in their order."""
        children = list(self._modules.values())
        self._modules.clear()
        self._modules.update((str(i), child) for i, child in enumerate(children))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._slice(index)
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber()

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module):
        """Add ``module`` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put ``module`` before position ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        children = list(self._modules.values())
        children.insert(index, module)
        self._modules.clear()
        self._modules.update((str(i), child) for i, child in enumerate(children))
        return self

    def extend(self, modules):
        """Add all of ``modules`` at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index):
        """Take out the module at ``index`` and return it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_Row):
    """Modules applied one after another: ``Sequential(Linear(2, 3), ReLU())`` or from an ordered dictionary.

    >>> net = Sequential(Linear(2, 3), ReLU())
    >>> net(flambeau.ones(1, 2)).shape
    torch.Size([1, 3])
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _slice(self, index):
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def forward(self, input):
        """The last module's result."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def _times(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return list(self) * times

    def __mul__(self, times):
        return Sequential(*self._times(times))

    __rmul__ = __mul__

    def __imul__(self, times):
        return self.extend(self._times(times)[len(self) :])


class ModuleList(_Row):
    """A list of modules, all of them registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _slice(self, index):
        return type(self)(list(self._modules.values())[index])

    def __add__(self, other):
        return ModuleList([*self, *other])

    __iadd__ = _Row.extend

    def insert(self, index, module):
        """Put ``module`` before position ``index``, as a list does."""
        children = list(self._modules.values())
        children.insert(index, module)
        self._modules.clear()
        for child in children:
            self.append(child)

    def __repr__(self):
        """Like equal children in a row are printed once, with their number."""
        groups = []
        for i, text in enumerate(map(repr, self)):
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        if not groups:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {_indented(text)}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {_indented(text)}"
            for first, last, text in groups
        ]
        body = "\n  ".join(lines)
        return f"{self._get_name()}(\n  {body}\n)"


def _pairs(given, kind):
    """The key-value pairs of a mapping or of an iterable of pairs, with clear complaints."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{kind}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if hasattr(given, "items"):
        return list(given.items())
    pairs = list(given)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{i} has length {len(pair)}; 2 is required")
    return pairs


class ModuleDict(Module):
    """A dictionary of modules, all of them registered."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key):
        """Take out the module called ``key`` and return it."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The names with their modules."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of an iterable of pairs, replacing those of the same name."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value, type_name):
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{type_name(value)} of size {size}{place}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters; it may hold other things too."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            made = type(self)()
            return made.extend(getattr(self, str(i)) for i in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, value):
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add ``value`` at the end; a tensor becomes a parameter."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add all of ``values`` at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        """One line for each entry."""
        lines = (f"  ({i}): {_described(value, lambda t: t.dtype)}" for i, value in enumerate(self))
        return "\n".join(lines)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are registered as parameters; it may hold other things too."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _name(key):
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict takes strings as keys, got {key!r} of type {type(key).__name__}")
        return key

    def __getitem__(self, key):
        return getattr(self, self._name(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._name(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        """The names, in the order in which they came."""
        return self._keys.keys()

    def values(self):
        """The entries."""
        return (self[key] for key in self._keys)

    def items(self):
        """The names with their entries."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key, default=None):
        """The entry called ``key``, or ``default``."""
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        """The entry called ``key``, which is made from ``default`` where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Take out the entry called ``key`` and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take out the last entry and return it with its name."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self):
        """Take out all entries."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """A new dictionary of the same entries."""
        return type(self)(dict(self.items()))

    def fromkeys(self, keys, default=None):
        """A new dictionary that has ``default`` under each of ``keys``."""
        return type(self)(dict.fromkeys(keys, default))

    def update(self, parameters):
        """Add the entries of a mapping or of an iterable of pairs, replacing those of the same name."""
        pairs = _pairs(parameters, "ParameterDict")
        ordered = isinstance(parameters, (OrderedDict, ParameterDict)) or not isinstance(parameters, Mapping)
        for key, value in pairs if ordered else sorted(pairs):
            self[key] = value

    def extra_repr(self):
        """One line for each entry."""
        return "\n".join(f"  ({key}): {_described(value, lambda t: t.type())}" for key, value in self.items())

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        made = type(self)(dict(other.items()))
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")
