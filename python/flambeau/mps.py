"""Apple's GPUs: flambeau has none yet, and says so."""

from ._absent import interface as _interface
from ._absent import refusal as _refusal

globals().update(_interface("mps"))
current_allocated_memory, driver_allocated_memory, recommended_max_memory, compile_shader = (
    _refusal("mps", name)
    for name in ("current_allocated_memory", "driver_allocated_memory", "recommended_max_memory", "compile_shader")
)


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'mps.{name}' yet")
