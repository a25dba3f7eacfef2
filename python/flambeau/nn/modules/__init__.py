"""The layers, by family."""

from . import activation, container, dropout, flatten, linear, loss, module, normalization, sparse
from .activation import *  # noqa: F403
from .container import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .sparse import *  # noqa: F403

_FAMILIES = (activation, container, dropout, flatten, linear, loss, normalization, sparse)

__all__ = ["Module", *(name for family in _FAMILIES for name in family.__all__)]
