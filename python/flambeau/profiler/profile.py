"""The profiler as a block, with a schedule for loops."""

import os
import time
from enum import Enum, IntEnum
from functools import wraps

from .. import _C
from .events import EventList, nested

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(IntEnum):
    """What is looked at; only the CPU has something to see."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class DeviceType(Enum):
    """Kinds of devices."""

    CPU = 0
    CUDA = 1


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    """What can be looked at."""
    return {ProfilerActivity.CPU}


class record_function:
    """A block with a name, which the profiler shows; also a decorator."""

    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        self.start = _C._profiler_now()
        return self

    def __exit__(self, *_):
        _C._profiler_note(self.name, self.start)

    def __call__(self, function):
        @wraps(function)
        def inside(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return inside


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """What to do in each step: skip some, then again and again wait, warm up, record."""

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step / length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    if active < 1:
        raise AssertionError("Invalid profiler schedule arguments")
    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, **_):
    """A function for ``on_trace_ready`` that writes each trace into a folder."""

    def handle(prof):
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json"))

    return handle


class ExecutionTraceObserver:
    """Writes traces to run again: refused."""

    def __init__(self):
        raise NotImplementedError("ExecutionTraceObserver: flambeau does not write traces that can be run again")


def _named(records):
    """Operations under the names that PyTorch's tables have."""
    known = vars(_C)
    nn = vars(_C._nn)
    return [
        ("aten::" + r[0] if r[0] in known or r[0] in nn or hasattr(_C.TensorBase, r[0]) else r[0], *r[1:])
        for r in records
    ]


class profile:
    """A block whose operations are timed: ``key_averages().table()`` shows them, ``export_chrome_trace`` writes them.

    With a ``schedule`` call ``step()`` after each step; ``on_trace_ready`` is called with the profiler after each round.
    """

    def __init__(
        self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
        with_stack=False, with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None,
        acc_events=False, use_cuda=None, custom_trace_id_callback=None, post_processing_timeout_s=None, **_,
    ):  # fmt: skip
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._events = EventList()
        self._recording = False

    def _action(self):
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD

    def _turn(self, on):
        if on == self._recording:
            return
        self._recording = on
        if on:
            _C._profiler_take()
            _C._profiler_listen(True)
        else:
            _C._profiler_listen(False)
            self._events = nested(_named(_C._profiler_take()))

    def start(self):
        """Begin."""
        self._last = self._action()
        self._turn(self._last in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE))

    def stop(self):
        """End."""
        recording = self._recording
        self._turn(False)
        if recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self):
        """End a step of the schedule and begin the next."""
        self.step_num += 1
        action = self._action()
        if self._last is ProfilerAction.RECORD_AND_SAVE:
            self.stop()
        self._turn(action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE))
        self._last = action

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def events(self):
        """Every run, in order."""
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """The runs of each name taken together."""
        return self._events.key_averages()

    def export_chrome_trace(self, path):
        """Write the runs for a browser's tracing page."""
        self._events.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write stacks: refused, none are kept."""
        raise NotImplementedError("profile.export_stacks: flambeau's profiler does not keep stacks")

    def add_metadata(self, key, value):
        """Add a word on the trace; traces have none."""

    add_metadata_json = preset_metadata_json = add_metadata
