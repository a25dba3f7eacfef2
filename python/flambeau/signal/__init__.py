"""Signals: windows."""

from . import windows

__all__ = ["windows"]
