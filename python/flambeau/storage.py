"""Storages: the bytes that tensors look at, plain or as numbers of a dtype.

>>> import flambeau as torch
>>> torch.arange(3).storage().tolist()
[0, 1, 2]
"""

from . import _C
from .serialization import _STORAGE_CLASSES

UntypedStorage = _C.UntypedStorage
__all__ = ["TypedStorage", "UntypedStorage", *_STORAGE_CLASSES.values()]

_CLASSES = {}  # by dtype


class TypedStorage:
    """Bytes read as numbers of one dtype. Old programs use it; a tensor of one dimension does the same and more."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        dtype = dtype or getattr(type(self), "_dtype", None) or _C.get_default_dtype()
        if wrap_storage is None:
            numbers = args[0] if args else 0
            shape = {"size": (numbers,)} if isinstance(numbers, int) else {}
            tensor = _C.empty(dtype=dtype, **shape) if shape else _C.tensor(list(numbers), dtype=dtype)
            wrap_storage = tensor.untyped_storage()
        self.dtype = dtype
        self._untyped_storage = wrap_storage

    def _tensor(self):
        return _C._tensor_from_storage(self._untyped_storage, 0, (self.size(),), (1,), self.dtype)

    @property
    def device(self):
        """Where the bytes are."""
        return self._untyped_storage.device

    is_cuda = is_hpu = is_sparse = False

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def untyped(self):
        """The same bytes, as bytes."""
        return self._untyped_storage

    def element_size(self):
        """Bytes of one number."""
        return self.dtype.itemsize

    def size(self):
        """How many numbers there are."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self):
        """How many bytes there are."""
        return self._untyped_storage.nbytes()

    def data_ptr(self):
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    def tolist(self):
        """The numbers as a list."""
        return self._tensor().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(wrap_storage=self._tensor()[index].clone().untyped_storage(), dtype=self.dtype)
        return self._tensor()[index].item()

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def fill_(self, value):
        """Set every number."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Take over the numbers of another storage."""
        self._tensor().copy_(source._tensor())
        return self

    def clone(self):
        """The same numbers in memory of their own."""
        return type(self)(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def resize_(self, size):
        """Make room for ``size`` numbers."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def cpu(self):
        """This storage: it is on the CPU."""
        return self

    def _to(self, dtype):
        return storage_class(dtype)(wrap_storage=self._tensor().to(dtype).clone().untyped_storage(), dtype=dtype)

    def pickle_storage_type(self):
        """The name of its class in files."""
        return _STORAGE_CLASSES[str(self.dtype).removeprefix("torch.")]

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self):
        return hash(self._untyped_storage)

    def __repr__(self):
        numbers = "".join(f" {x}\n" for x in self.tolist())
        return (
            f"{numbers}[flambeau.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )

    def __reduce__(self):
        return type(self), (self.tolist(),)


def _convert(name, dtype):
    def convert(self):
        return self._to(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The numbers as {dtype}, in memory of their own."
    return convert


for _name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool"):
    setattr(TypedStorage, _name, _convert(_name, getattr(_C, {"char": "int8", "byte": "uint8"}.get(_name, _name))))
for _dtype, _name in _STORAGE_CLASSES.items():
    _made = type(
        _name, (TypedStorage,), {"_dtype": getattr(_C, _dtype), "dtype": getattr(_C, _dtype), "__module__": "flambeau"}
    )
    _CLASSES[getattr(_C, _dtype)] = globals()[_name] = _made
del _name, _dtype, _made


def storage_class(dtype):
    """The class of storages of a dtype."""
    return _CLASSES.get(dtype, TypedStorage)


def storage_of(tensor):
    """The storage that a tensor looks at, as numbers of its dtype."""
    return storage_class(tensor.dtype)(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
