"""Tensors from what other libraries hold: ``asarray`` and ``frombuffer``."""

from . import _C

__all__ = ["asarray", "frombuffer"]


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of ``obj``: a tensor, an array, an object with the buffer protocol or DLPack, a number or nested lists.

    Memory is shared where it can be, unless ``copy=True``; with ``copy=False`` a ValueError says where it cannot.
    """
    shared = None
    if isinstance(obj, _C.TensorBase):
        shared = obj
    elif type(obj).__module__ == "numpy":
        shared = _C.from_numpy(obj) if getattr(obj, "ndim", None) is not None and hasattr(obj, "__array_interface__") and type(obj).__name__ == "ndarray" else None
    elif hasattr(obj, "__dlpack__"):
        from .utils.dlpack import from_dlpack

        shared = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shared = frombuffer(obj, dtype=dtype or _C.get_default_dtype())
    if shared is None:
        if copy is False:
            raise ValueError("asarray: can't alias arbitrary sequence into a tensor.")
        made = _C.tensor(obj, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    converts = (dtype is not None and dtype != shared.dtype) or (device is not None and _C.device(device) != shared.device)
    if copy is False and converts:
        raise ValueError(f"asarray: can't alias tensor of {shared.dtype} on {shared.device} as {dtype} on {device}: copy=False")
    made = shared.to(device=device or shared.device, dtype=dtype or shared.dtype) if converts else shared
    if copy and not converts:
        made = made.clone()
    if requires_grad:
        return made if made.requires_grad else made.detach().requires_grad_()
    return made.detach() if made.requires_grad else made


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A vector over the memory of an object with the buffer protocol, of ``count`` elements (as many as fit, if negative) from byte ``offset`` on."""
    import numpy as np

    view = memoryview(buffer).cast("B") if memoryview(buffer).nbytes else memoryview(b"")
    size = dtype.itemsize
    if view.nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({view.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < view.nbytes:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({view.nbytes} bytes) - 1")
    if count < 0:
        if (view.nbytes - offset) % size:
            raise ValueError(f"buffer length ({view.nbytes - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})")
        count = (view.nbytes - offset) // size
    if offset + count * size > view.nbytes:
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({view.nbytes} bytes)")
    flat = _C.from_numpy(np.frombuffer(view, dtype=np.uint8, count=count * size, offset=offset))
    made = flat.view(dtype)
    return made.requires_grad_() if requires_grad else made
