"""Warnings that are given once in a process."""

from warnings import warn

_given = set()


def warn_once(message, stacklevel=2):
    """Warn with this message, the first time."""
    if message not in _given:
        _given.add(message)
        warn(message, stacklevel=stacklevel + 1)
