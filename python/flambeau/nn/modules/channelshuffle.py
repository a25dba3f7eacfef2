"""Channels of groups, one by one from each."""

from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Takes the channels of (N, C, ...) from each of ``groups`` groups in turn. Source: Zhang and others, 2018."""

    __constants__ = ["groups"]

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        """The same shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        """The number of groups."""
        return f"groups={self.groups}"
