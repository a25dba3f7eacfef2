"""A reader of pickles that makes allowed objects only.

It is Python's own reader with every way to reach code closed but one: a global must be among tensors' rebuilding
functions, plain containers, flambeau's own modules and optimizers (where asked for), or what the user has named.
"""

import pickle
from collections import Counter, OrderedDict, defaultdict
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from . import _C, _utils

_REBUILD = (
    "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_meta_tensor_no_storage",
)  # fmt: skip
_PLAIN = {
    "collections.OrderedDict": OrderedDict, "collections.Counter": Counter, "collections.defaultdict": defaultdict,
    "builtins.set": set, "builtins.frozenset": frozenset, "builtins.bytearray": bytearray, "builtins.complex": complex,
    "builtins.dict": dict, "builtins.list": list, "builtins.tuple": tuple, "builtins.int": int,
    "builtins.float": float, "builtins.bool": bool, "builtins.str": str,
}  # fmt: skip
_CODE = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
# Packages of which every class is made of settings and tensors: nothing in them acts when it is made.
_OWN = ("nn.", "optim.")


class _StorageClass:
    """Stands for a storage class within a reference to a storage."""

    def __init__(self, dtype):
        self.dtype = dtype


def _storage_classes():
    from .serialization import _STORAGE_CLASSES

    classes = {f"torch.{name}": _StorageClass(getattr(_C, dtype)) for dtype, name in _STORAGE_CLASSES.items()}
    classes["torch.storage.UntypedStorage"] = classes["torch.UntypedStorage"] = _StorageClass(None)
    return classes


class Unpickler(pickle._Unpickler):
    """Reads the pickle of an archive; ``extra`` maps paths to what the user allows, ``modules`` allows flambeau's own."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(self, reader, move, extra, modules):
        super().__init__(BytesIO(reader.record("data.pkl")))
        self.reader, self.move, self.modules = reader, move, modules
        self.loaded = {}
        self.allowed = {**_PLAIN, **_storage_classes(), **extra}
        self.callables = {id(obj) for obj in (*_PLAIN.values(), *extra.values())}
        for name in _REBUILD:
            self._allow(f"torch._utils.{name}", getattr(_utils, name))
        self.rebuild_typed = self._rebuild_typed  # kept: a bound method is a new object each time
        self._allow("torch._utils._rebuild_from_type_v2", self.rebuild_typed)
        for name in ("Size", "device"):
            self._allow(f"torch.{name}", getattr(_C, name))

    def _allow(self, path, obj):
        self.allowed[path] = obj
        self.callables.add(id(obj))

    def _rebuild_typed(self, func, new_type, args, state):
        """A tensor of a subclass; what makes it is checked as a call of the file's own is."""
        self._check(func)
        return _utils._rebuild_from_type_v2(func, new_type, args, state)

    def find_class(self, module, name):
        """The object at ``module.name``, if it is allowed."""
        path = f"{'builtins' if module == '__builtin__' else module}.{name}"
        if path.startswith("flambeau."):
            path = "torch" + path[len("flambeau") :]
        if path in self.allowed:
            return self.allowed[path]
        found = self._own(path)
        if found is None:
            hint = "" if self.modules else ", or pass weights_only=False if it is a module of flambeau's"
            raise pickle.UnpicklingError(
                f"load: the file names '{path}', which is not among the classes and functions that may be made; nothing "
                f"was run. If you trust it, allow it with flambeau.serialization.add_safe_globals([...]){hint}"
            )
        return found

    def _own(self, path):
        """A dtype, ``Tensor``, or a class of flambeau's modules and optimizers."""
        if not path.startswith("torch."):
            return None
        inner = path[len("torch.") :]
        if inner in ("Tensor", "_tensor.Tensor", "nn.parameter.Parameter"):
            from ._tensor import Tensor
            from .nn.parameter import Parameter

            return Parameter if inner.endswith("Parameter") else Tensor
        value = getattr(_C, inner, None) if inner.isidentifier() else None
        if isinstance(value, (_C.dtype, _C.layout, _C.memory_format)):
            return value
        if not self.modules or not inner.startswith(_OWN):
            return None
        import sys

        module, _, name = inner.rpartition(".")
        from . import nn, optim  # noqa: F401  their parts are in sys.modules from here on

        found = getattr(sys.modules.get(f"{__package__}.{module}"), name, None)
        if isinstance(found, type) and (found.__module__ or "").startswith(__package__ + "."):
            self.callables.add(id(found))
            return found
        return None

    def persistent_load(self, pid):
        """The storage that a reference names."""
        kind, cls, key, location, numel = pid
        if kind != "storage" or not isinstance(cls, _StorageClass):
            raise pickle.UnpicklingError(f"load: unknown persistent reference {kind!r}")
        if key not in self.loaded:
            dtype = cls.dtype
            nbytes = numel if dtype is None else numel * dtype.itemsize
            self.loaded[key] = self.reader.storage(key, nbytes, dtype, self.move(location))
        return _utils._TypedBytes(self.loaded[key], cls.dtype)

    # ---- the opcodes that call

    def _check(self, callee):
        if id(callee) not in self.callables:
            raise pickle.UnpicklingError(f"load: the file calls {callee!r}, which may not be called; nothing was run")

    def load_reduce(self):
        """REDUCE: call something with arguments."""
        self._check(self.stack[-2])
        super().load_reduce()

    dispatch[pickle.REDUCE[0]] = load_reduce

    def load_newobj(self):
        """NEWOBJ: make an object without its constructor."""
        self._check(self.stack[-2])
        super().load_newobj()

    dispatch[pickle.NEWOBJ[0]] = load_newobj

    def load_newobj_ex(self):
        """NEWOBJ_EX: as NEWOBJ, with keyword arguments."""
        self._check(self.stack[-3])
        super().load_newobj_ex()

    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex

    def load_build(self):
        """BUILD: give an object its state. A class or a function has none that a file could set."""
        target = self.stack[-2]
        if isinstance(target, _CODE):
            raise pickle.UnpicklingError(f"load: the file sets attributes of {target!r}, which is refused")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build

    def refuse(self):
        """Opcodes of old or foreign pickles that call by name."""
        raise pickle.UnpicklingError("load: the file uses an opcode that calls by name, which is refused")

    for _opcode in (pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_opcode[0]] = refuse
    del _opcode
