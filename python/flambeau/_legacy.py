"""``FloatTensor`` and its kin: names of types from before dtypes, which old programs still call and ask for."""

from . import _C
from ._tensor import Tensor

DTYPES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64",
    "BoolTensor": "bool",
}  # fmt: skip


class _TensorType(type):
    """Classes whose instances are all tensors of a dtype."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype

    def __call__(cls, *args, device=None):
        if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
            data = args[0]
            if isinstance(data, Tensor):
                return data.to(cls.dtype)
            return _C.tensor(data, dtype=cls.dtype, device=device)
        sizes = args[0] if args and isinstance(args[0], _C.Size) else args or (0,)
        return _C.empty(tuple(sizes), dtype=cls.dtype, device=device)


def tensor_type(name):
    """The class of this name."""
    return _TensorType(name, (), {"dtype": getattr(_C, DTYPES[name]), "__module__": "flambeau"})
