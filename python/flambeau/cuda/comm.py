"""CUDA's part of this name: refused, there are no CUDA devices."""

from .._absent import refusal as _refusal

broadcast, scatter, gather = (_refusal("cuda", f"comm.{name}") for name in ("broadcast", "scatter", "gather"))
reduce_add, broadcast_coalesced = (_refusal("cuda", f"comm.{name}") for name in ("reduce_add", "broadcast_coalesced"))
