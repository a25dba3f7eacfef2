"""CUDA's part of this name: refused, there are no CUDA devices."""

from .._absent import refusal as _refusal



def is_available(tensors):
    """Whether NCCL can work on these tensors."""
    return False


version = _refusal("cuda", "nccl.version")
all_reduce, broadcast = _refusal("cuda", "nccl.all_reduce"), _refusal("cuda", "nccl.broadcast")
