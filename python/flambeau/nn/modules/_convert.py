"""The argument forms of ``Module.to``."""

from ... import _C
from ..._tensor import Tensor


def parse_to(args, kwargs):
    """``(device, dtype, non_blocking, memory_format)`` out of the arguments of ``Module.to``."""
    device = dtype = None
    kwargs = dict(kwargs)
    memory_format = kwargs.pop("memory_format", None)
    positional = list(args)
    first = kwargs.pop("tensor", kwargs.pop("other", None))
    if first is None and positional and isinstance(positional[0], Tensor):
        first = positional.pop(0)
    if first is not None:
        device, dtype = first.device, first.dtype
    else:
        if positional and isinstance(positional[0], _C.dtype):
            dtype = positional.pop(0)
        elif positional:
            device = positional.pop(0)
            if positional and (positional[0] is None or isinstance(positional[0], _C.dtype)):
                dtype = positional.pop(0)
        device, dtype = kwargs.pop("device", device), kwargs.pop("dtype", dtype)
    non_blocking = positional.pop(0) if positional else kwargs.pop("non_blocking", False)
    kwargs.pop("copy", None)
    if positional or kwargs:
        raise TypeError(
            "to() received an invalid combination of arguments: takes (device, dtype, non_blocking), "
            f"(dtype, non_blocking) or (tensor, non_blocking), got {args} and {kwargs}"
        )
    if device is not None and not isinstance(device, _C.device):
        device = _C.device(device)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    return device, dtype, non_blocking, memory_format


def to_function(device, dtype, non_blocking, memory_format):
    """What ``Module.to`` does to one tensor."""

    def convert(tensor):
        cast = dtype if tensor.is_floating_point() or tensor.is_complex() else None
        if memory_format is not None and tensor.dim() in (4, 5):
            return tensor.to(device, cast, non_blocking, memory_format=memory_format)
        return tensor.to(device, cast, non_blocking)

    return convert
