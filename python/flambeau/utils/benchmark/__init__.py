"""Timing of small pieces of code."""

from .compare import Compare
from .timer import CallgrindStats, Language, Measurement, TaskSpec, Timer, timer

__all__ = ["CallgrindStats", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "timer"]
