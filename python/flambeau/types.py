"""Names of types for annotations."""

from typing import Union

from . import _C
from ._tensor import Tensor
from .storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool = int, float, bool
_dtype, _device, _size, _layout = _C.dtype, _C.device, _C.Size | list[int] | tuple[int, ...], _C.layout
Number = int | float | bool
Device = Union[_C.device, str, int, None]
Storage = UntypedStorage | TypedStorage
FileLike = str | object
_TensorOrTensors = Tensor | tuple[Tensor, ...]
_TensorOrTensorsOrGradEdge = _TensorOrTensors
PySymType = int | float | bool
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
