"""Schedules: how the learning rate of each group goes on from step to step.

A schedule computes the next rate from the present one, so that several can act on one optimizer; the closed forms
serve jumps to a given epoch.
"""

from . import _composed, _cycles, _plain, _plateau
from ._base import LRScheduler
from ._composed import *  # noqa: F403
from ._cycles import *  # noqa: F403
from ._plain import *  # noqa: F403
from ._plateau import *  # noqa: F403

__all__ = ["LRScheduler", *_plain.__all__, *_composed.__all__, *_cycles.__all__, *_plateau.__all__]
