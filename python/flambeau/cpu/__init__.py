"""The CPU, under the interface that devices have."""

from contextlib import nullcontext as _nullcontext

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def __getattr__(name):
    if name == "amp":
        from importlib import import_module

        return import_module(".amp", __name__)
    raise AttributeError(f"flambeau has no 'cpu.{name}' yet")


def is_available():
    """Whether there is a CPU: there is."""
    return True


def is_initialized():
    """Whether it was made ready: it needs no making."""
    return True


def device_count():
    """How many there are: all cores are one device."""
    return 1


def current_device():
    """The name of the device."""
    return "cpu"


def set_device(device):
    """Choose a device; there is one."""


def synchronize(device=None):
    """Wait until work is done: on the CPU it is done when an operation returns."""


def stream(stream=None):
    """A block on a stream; the CPU has none."""
    return _nullcontext()


def _is_avx2_supported():
    from .. import _C

    return _C._cpu_capability() in ("AVX2", "AVX512")


def _is_avx512_supported():
    from .. import _C

    return _C._cpu_capability() == "AVX512"
