"""Where programs look for what ``flambeau.distributed`` has."""

from . import *  # noqa: F403
from .groups import _get_default_group  # noqa: F401
