"""Python's ``multiprocessing``, with ``spawn``. Tensors travel as copies: memory is not shared yet."""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from .spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    start_processes,
    spawn,
)

__all__ = [
    *_python.__all__, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy):
    """How tensors are shared between processes: a choice without effect, they are copied."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"Invalid sharing strategy: {new_strategy}")
    _strategy = new_strategy


def get_sharing_strategy():
    """The strategy that was set."""
    return _strategy


def get_all_sharing_strategies():
    """The names of strategies."""
    return {"file_descriptor", "file_system"}
