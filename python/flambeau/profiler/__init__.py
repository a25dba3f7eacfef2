"""Where a program's time goes: each operation that Python calls, and blocks that the program names.

Operations of the backward pass are not told apart; a ``record_function`` around ``backward()`` shows its time.

>>> import flambeau as torch
>>> with torch.profiler.profile() as prof:
...     y = torch.ones(3) + 1
>>> [e.key for e in prof.key_averages()]
['aten::add', 'aten::ones']
"""

from .events import EventList, FunctionEvent
from .profile import (
    DeviceType,
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "EventList", "ExecutionTraceObserver", "FunctionEvent", "ProfilerAction", "ProfilerActivity", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


def kineto_available():
    """Whether PyTorch's tracer of devices is there: it is not, times are taken on the CPU."""
    return False


def itt(*args, **kwargs):
    """Intel's tracing: refused."""
    raise NotImplementedError("torch.profiler.itt: flambeau does not talk to Intel's tracer")


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'profiler.{name}' yet")
