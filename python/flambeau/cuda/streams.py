"""Where programs look for what ``flambeau.cuda`` has."""

from . import *  # noqa: F403
