"""Optimizers and learning-rate schedules."""

from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'optim.{name}' yet")
