"""The machine's accelerator, of whatever kind: flambeau has none yet, and says so."""

from ._absent import interface as _interface
from ._absent import refusal as _refusal

_wanted = (
    "is_available", "device_count", "current_stream", "set_stream", "synchronize", "empty_cache", "memory_allocated",
    "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats", "reset_peak_memory_stats",
    "reset_accumulated_memory_stats", "get_device_capability",
)  # fmt: skip
_all = _interface("accelerator")
globals().update({name: _all[name] for name in _wanted})
device_index = _all["device"]
del _all
current_device_index, current_device_idx, set_device_index, set_device_idx, get_memory_info = (
    _refusal("accelerator", name)
    for name in ("current_device_index", "current_device_idx", "set_device_index", "set_device_idx", "get_memory_info")
)


def current_accelerator(check_available=False):
    """The device that work would go to; None, as there is no accelerator."""
    return None


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'accelerator.{name}' yet")
