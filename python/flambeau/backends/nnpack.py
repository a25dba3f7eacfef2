"""NNPACK: flambeau has kernels of its own instead."""

from ._flags import block as _block
from ._flags import setter as _setter

enabled = False
flags = _block(globals(), "enabled")
set_flags = _setter(globals(), "enabled")


def is_available():
    """Whether it is used."""
    return False
