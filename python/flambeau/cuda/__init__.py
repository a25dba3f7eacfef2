"""CUDA devices: flambeau has none yet, and says so."""

__all__ = [
    "is_available", "device_count", "is_initialized", "current_device", "get_device_name", "synchronize",
    "empty_cache", "manual_seed", "manual_seed_all", "is_bf16_supported", "memory_allocated", "max_memory_allocated",
    "set_device",
]  # fmt: skip


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'cuda.{name}' yet")


def _refuse(*args, **kwargs):
    raise RuntimeError(
        "flambeau was not built with CUDA devices: torch.cuda.is_available() is False. Use device 'cpu'."
    )


def is_available():
    """Whether a CUDA device can be used."""
    return False


def device_count():
    """How many CUDA devices there are."""
    return 0


def is_initialized():
    """Whether CUDA has been used."""
    return False


def is_bf16_supported(including_emulation=True):
    """Whether the device computes in bfloat16."""
    return False


def manual_seed(seed):
    """Seed the device's generator; nothing to do without one."""


def manual_seed_all(seed):
    """Seed the generators of all devices; nothing to do without any."""


def empty_cache():
    """Give cached device memory back; there is none."""


def memory_allocated(device=None):
    """Bytes of device memory in use."""
    return 0


def max_memory_allocated(device=None):
    """The most bytes of device memory that were in use."""
    return 0


current_device = get_device_name = get_device_properties = get_device_capability = _refuse
set_device = synchronize = init = current_stream = Stream = Event = _refuse
