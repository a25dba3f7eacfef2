"""Memory shared with other libraries, by DLPack."""

from .._C import from_dlpack


def to_dlpack(tensor):
    """A capsule of the tensor's memory."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
