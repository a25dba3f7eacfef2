"""The interface of accelerators that are not here: what asks is answered, what would use one is refused."""

from contextlib import contextmanager

# What needs a device, by the answer that a machine without one gives. Functions of the other kind are refused.
_ANSWERS = {
    "device_count": 0, "is_initialized": False, "is_bf16_supported": False, "is_tf32_supported": False,
    "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
    "memory_cached": 0, "max_memory_cached": 0, "is_current_stream_capturing": False, "is_available": False,
}  # fmt: skip
_NOTHING = (
    "manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache", "reset_peak_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats", "ipc_collect",
    "set_per_process_memory_fraction", "set_rng_state_all",
)  # fmt: skip
_REFUSED = (
    "init", "current_device", "set_device", "synchronize", "get_device_name", "get_device_properties",
    "get_device_capability", "current_stream", "default_stream", "set_stream", "get_rng_state", "set_rng_state",
    "initial_seed", "mem_get_info", "memory_summary", "utilization", "temperature", "power_draw", "clock_rate",
    "can_device_access_peer", "graph_pool_handle", "make_graphed_callables", "memory_snapshot",
)  # fmt: skip


def refusing(name, error, text, doc):
    """A function (or method) of this name that raises ``error(text)``."""

    def refuse(*args, **kwargs):
        raise error(text)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = doc
    return refuse


def refusing_class(refuse, module):
    """A class of the name of ``refuse`` that calls it instead of making an object."""

    def __init__(self, *args, **kwargs):
        refuse()

    return type(refuse.__name__, (), {"__init__": __init__, "__doc__": refuse.__doc__, "__module__": module})


def refusal(device, name):
    """A function that refuses, and says how to ask whether there is such a device."""
    text = (
        f"torch.{device}.{name}: flambeau has no {device} devices yet: torch.{device}.is_available() is False. "
        "Use device 'cpu'."
    )
    return refusing(name, RuntimeError, text, f"Refused: there are no {device} devices.")


def _answer(name, value):
    def answer(*args, **kwargs):
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"{value}: there is no such device."
    return answer


Stream, Event = (refusing_class(refusal("accelerator", n), "flambeau.accelerator") for n in ("Stream", "Event"))


class _device:
    """A block on a device; for none of them (-1 or None) it does nothing."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None and self.idx != -1:
            self._refuse()

    def __exit__(self, *_):
        return False


@contextmanager
def stream(stream):
    """A block on a stream; for None it does nothing."""
    yield


def interface(device, classes=("Stream", "Event")):
    """The names of a device's module, by name."""
    names = {name: _answer(name, value) for name, value in _ANSWERS.items()}
    names |= {name: _answer(name, None) for name in _NOTHING}
    names |= {name: refusal(device, name) for name in _REFUSED}
    names |= {name: refusing_class(refusal(device, name), f"flambeau.{device}") for name in classes}
    block = type("device", (_device,), {"_refuse": staticmethod(refusal(device, "device")), "__doc__": _device.__doc__})
    return names | {
        "device": block, "stream": stream, "get_rng_state_all": _answer("get_rng_state_all", []),
        "get_arch_list": _answer("get_arch_list", []), "memory_stats": _answer("memory_stats", {}),
    }  # fmt: skip
