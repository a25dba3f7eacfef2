"""The order in which ``einsum`` contracts: from left to right; the package opt_einsum is not asked."""

from ._flags import block as _block
from ._flags import setter as _setter

enabled = False
strategy = None
flags = _block(globals(), "enabled", "strategy")
set_flags = _setter(globals(), "enabled", "strategy")


def is_available():
    """Whether opt_einsum is used."""
    return False


def get_opt_einsum():
    """The package: None, it is not used."""
    return None
