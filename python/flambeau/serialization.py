"""``save`` and ``load``: PyTorch's ``.pt`` files.

A file is a zip archive of one pickle and the bytes of the storages that it names. ``save`` writes PyTorch's class
paths, so either side reads the other's files. ``load`` runs no code that a file names: with ``weights_only`` the
native reader makes tensors and plain containers and nothing else; without it, classes of flambeau's own modules and
those named by ``add_safe_globals`` are made as well, by their constructor-free protocol or as the user allowed.
"""

import os
import pickle
from collections import OrderedDict

from . import _C

__all__ = ["save", "load", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

DEFAULT_PROTOCOL = 2

_STORAGE_CLASSES = {
    "bool": "BoolStorage", "uint8": "ByteStorage", "int8": "CharStorage", "int16": "ShortStorage",
    "int32": "IntStorage", "int64": "LongStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "float32": "FloatStorage", "float64": "DoubleStorage", "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}  # fmt: skip


def _name_of(dtype):
    return str(dtype).rpartition(".")[2]


class StorageOf:
    """The storage of a tensor as a pickle sees it: bytes, and the dtype that names its class (None: untyped)."""

    __slots__ = ("untyped", "dtype")

    def __init__(self, untyped, dtype):
        self.untyped = untyped
        self.dtype = dtype

    def __reduce__(self):  # only by plain pickle: ``save`` writes a reference
        from . import _utils

        return _utils._TypedBytes, (self.untyped, self.dtype)


def tensor_parts(tensor):
    """The function that rebuilds ``tensor``, and its arguments, as files have them."""
    from . import _utils

    storage, hooks = tensor.untyped_storage(), OrderedDict()  # a place that the format has for hooks
    view = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride(), tensor.requires_grad, hooks)
    if _name_of(tensor.dtype) in _STORAGE_CLASSES:
        return _utils._rebuild_tensor_v2, (StorageOf(storage, tensor.dtype), *view)
    return _utils._rebuild_tensor_v3, (StorageOf(storage, None), *view, tensor.dtype)


# ---- save


class _Name:
    """A class or function that a pickle names without its being at hand."""

    __slots__ = ("module", "name")

    def __init__(self, module, name):
        self.module, self.name = module, name


class _Pickler(pickle._Pickler):
    """Writes storages as references, and what is flambeau's under the path that it has in PyTorch."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, out, protocol):
        super().__init__(out, protocol)
        self.storages = {}  # by identity: key and storage
        self.names = {}
        self.places = {}

    def persistent_id(self, obj):
        if type(obj) is not StorageOf:
            return None
        storage, dtype = obj.untyped, obj.dtype
        key, _ = self.storages.setdefault(storage._cdata, (str(len(self.storages)), storage))
        location = str(storage.device)
        location = self.places.setdefault(location, location)  # one object, so that it is written once
        if dtype is None:
            return ("storage", self.name("torch.storage", "UntypedStorage"), key, location, storage.nbytes())
        kind = self.name("torch", _STORAGE_CLASSES[_name_of(dtype)])
        return ("storage", kind, key, location, storage.nbytes() // dtype.itemsize)

    def name(self, module, name):
        """One object a name, so that the second time only a reference is written."""
        return self.names.setdefault((module, name), _Name(module, name))

    def save_name(self, obj):
        """Write a global by module and name."""
        if self.proto >= 4:
            self.save(obj.module)
            self.save(obj.name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = save_name

    def save_dtype(self, obj):
        """Write a dtype as the constant that it is in PyTorch."""
        self.save(self.name("torch", _name_of(obj)))

    dispatch[_C.dtype] = save_dtype

    def save_global(self, obj, name=None):
        """Write a class or function; flambeau's own under PyTorch's path."""
        module = getattr(obj, "__module__", None) or ""
        if module == "flambeau" or module.startswith("flambeau."):
            path = "torch" + module[len("flambeau") :]
            self.save(self.name(path.replace("torch._C", "torch"), name or obj.__qualname__))
        else:
            super().save_global(obj, name)

    def save_class(self, obj):
        """Write a class."""
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch[type] = save_class
    dispatch[type(tensor_parts)] = save_global

    def save_size(self, obj):
        """Write a shape."""
        self.save_reduce(self.name("torch", "Size"), (tuple(obj),), obj=obj)

    dispatch[_C.Size] = save_size

    def save_device(self, obj):
        """Write a device."""
        args = (obj.type,) if obj.index is None else (obj.type, obj.index)
        self.save_reduce(self.name("torch", "device"), args, obj=obj)

    dispatch[_C.device] = save_device

    def save_reduce(self, func, *args, **kwargs):
        """Write a call, also of something that is known by name alone."""
        if isinstance(func, _Name):
            arguments, obj = args[0], kwargs["obj"]
            self.save(func)
            self.save(arguments)
            self.write(pickle.REDUCE)
            self.memoize(obj)
        else:
            super().save_reduce(func, *args, **kwargs)


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True):
    """Write ``obj`` (tensors, and containers and objects that hold some) to the file or path ``f``.

    Tensors that share memory share it again after loading. PyTorch reads the file.
    """
    if pickle_module is not pickle:
        raise NotImplementedError("save: a pickle_module other than pickle is not supported by flambeau")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: flambeau writes the zip format only; PyTorch reads it since version 1.6")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f).__name__}"
        )
    from io import BytesIO

    out = BytesIO()
    pickler = _Pickler(out, pickle_protocol)
    pickler.dump(obj)
    writer = _C._PtWriter(os.fspath(f) if isinstance(f, (str, os.PathLike)) else f)
    writer.pickle(out.getvalue())
    for key, storage in pickler.storages.values():
        writer.storage(key, storage)
    writer.finish()


# ---- load

_safe_globals = {}  # by path, as files name it


def _paths(entry):
    """The object, and the paths under which files may name it."""
    obj, path = entry if isinstance(entry, tuple) else (entry, None)
    path = path or f"{obj.__module__}.{obj.__qualname__}"
    twin = "torch" + path[len("flambeau") :] if path.startswith("flambeau.") else path
    return obj, {path, twin}


def add_safe_globals(safe_globals):
    """Allow ``load`` to make objects of these classes and call these functions; ``(object, "path")`` names one."""
    for entry in safe_globals:
        obj, paths = _paths(entry)
        for path in paths:
            _safe_globals[path] = obj


def clear_safe_globals():
    """Take back all that ``add_safe_globals`` allowed."""
    _safe_globals.clear()


def get_safe_globals():
    """What ``add_safe_globals`` has allowed."""
    return list({id(obj): obj for obj in _safe_globals.values()}.values())


class safe_globals:
    """``add_safe_globals`` for a block."""

    def __init__(self, safe_globals):
        self.added = list(safe_globals)

    def __enter__(self):
        self.before = dict(_safe_globals)
        add_safe_globals(self.added)

    def __exit__(self, *_):
        _safe_globals.clear()
        _safe_globals.update(self.before)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what ``save``, PyTorch's or flambeau's, wrote to the file or path ``f``.

    ``map_location`` says where storages go: a device, a dictionary from saved to wanted ones, or a function of
    storage and location. With ``mmap`` a path is mapped instead of read. No code of the file's choosing is run; with
    ``weights_only=False`` modules of flambeau and what ``add_safe_globals`` names are made too.
    """
    if pickle_module is not None and weights_only:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is None and not (hasattr(f, "read") and hasattr(f, "seek")):
        raise AttributeError(
            f"load: expected a path or a file-like object with 'read' and 'seek', got {type(f).__name__}"
        )
    if mmap and path is None:
        raise ValueError("f must be a file path in order to use the mmap argument")
    source = f if path is None else path
    move = _mover(map_location)
    if weights_only is not False and not _safe_globals:
        return _C._pt_load(source, bool(mmap), move)
    return _load_objects(source, bool(mmap), move, weights_only is False)


def _mover(map_location):
    """A function from a saved location to the device for it, given to the native reader."""
    if map_location is None:
        return _present
    if callable(map_location):
        return lambda location: _device_of(map_location(None, location), location)
    if isinstance(map_location, dict):
        wanted = {str(key): str(value) for key, value in map_location.items()}
        return lambda location: _present(wanted.get(location, location))
    device = str(_C.device(map_location) if isinstance(map_location, (str, int)) else map_location)
    return lambda _: _present(device)


def _device_of(given, location):
    if given is None:
        return _present(location)
    return _present(str(getattr(given, "device", given)))


def _present(location):
    """``location``, if there is such a device."""
    kind = location.partition(":")[0]
    if kind in ("cpu", "meta"):
        return kind
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    raise RuntimeError(f"load: the file's tensors lie on '{location}', which is not here: pass map_location='cpu'")


def _load_objects(source, mmap, move, modules):
    from ._unpickle import Unpickler

    reader = _C._PtReader(source, mmap)
    return Unpickler(reader, move, dict(_safe_globals), modules).load()
