"""Counters of PyTorch's tracer: nothing is counted."""

from collections import Counter, defaultdict

counters = defaultdict(Counter)


def is_compile_supported(device_type):
    """Whether programs on a type of device are compiled: not yet."""
    return False
