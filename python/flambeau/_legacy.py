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
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.device.type == cls.device

    def __call__(cls, *args, device=None):
        if cls.device != "cpu":
            from ._absent import refusal

            refusal(cls.device, cls.__name__)()
        return _made(args, cls.dtype, device)


def _made(args, dtype, device):
    """What the old constructors give: of these numbers, or of these sizes."""
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        data = args[0]
        if isinstance(data, Tensor):
            return data.to(dtype)
        return _C.tensor(data, dtype=dtype, device=device)
    sizes = args[0] if args and isinstance(args[0], _C.Size) else args or (0,)
    return _C.empty(tuple(sizes), dtype=dtype, device=device)


def new(tensor, args, device):
    """``tensor.new(*args)``."""
    if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dtype != tensor.dtype:
        raise TypeError(f"new: expected a tensor of {tensor.dtype}, got one of {args[0].dtype}")
    return _made(args, tensor.dtype, device if device is not None else tensor.device)


def tensor_type(name, device="cpu"):
    """The class of this name, for a type of device."""
    module = "flambeau" if device == "cpu" else f"flambeau.{device}"
    return _TensorType(name, (), {"dtype": getattr(_C, DTYPES[name]), "device": device, "__module__": module})
