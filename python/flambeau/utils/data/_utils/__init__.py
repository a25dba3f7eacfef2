"""What a loader does with the samples of a batch."""

from . import collate
