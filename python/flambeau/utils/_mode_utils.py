"""What PyTorch's own tests switch off around random draws; here there is nothing to switch off."""

from contextlib import nullcontext as no_dispatch

from .. import _C

_C._DisableFuncTorch = no_dispatch


def all_same_mode(modes):
    """Whether all of ``modes`` equal the first."""
    return all(mode == modes[0] for mode in modes)


__all__ = ["all_same_mode", "no_dispatch"]
