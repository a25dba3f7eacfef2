"""Which kinds of attention may be used. flambeau's has one, which is exact and never holds all scores."""

from contextlib import contextmanager
from enum import Enum

from ...backends import cuda as _cuda

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """Kinds of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_FLAGS = {
    SDPBackend.MATH: "math", SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}  # fmt: skip


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """A block in which only some kinds of attention may be used; the result is the same."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends)}"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    before = dict(_cuda._flags)
    _cuda._flags.update({flag: backend in chosen for backend, flag in _FLAGS.items()})
    try:
        yield {}
    finally:
        _cuda._flags.update(before)
