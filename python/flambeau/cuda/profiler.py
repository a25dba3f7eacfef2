"""CUDA's part of this name: refused, there are no CUDA devices."""

from .._absent import refusal as _refusal

start, stop, profile = (_refusal("cuda", f"profiler.{name}") for name in ("start", "stop", "profile"))
