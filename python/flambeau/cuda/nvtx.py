"""Marks for NVIDIA's profilers, which see nothing of a program without CUDA: accepted, and without effect."""

from contextlib import contextmanager

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg):
    """Begin a range; its depth, -2 where no profiler listens."""
    return -2


def range_pop():
    """End a range; its depth, -2 where no profiler listens."""
    return -2


def range_start(msg):
    """Begin a range by number."""
    return 0


def range_end(range_id):
    """End a range by number."""


def mark(msg):
    """Mark a moment."""


@contextmanager
def range(msg, *args, **kwargs):
    """A range as a block, or around a function."""
    yield
