"""Padding: with a constant, by reflection, by repetition, round in a circle."""

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """Base of all: ``padding`` is one width for all sides, or (left, right, top, bottom, ...)."""

    __constants__ = ["padding"]
    _dims = None
    _mode = None

    def __init__(self, padding):
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input):
        """(N, C, ...) with the last dimensions made larger; the batch dimension may be absent."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        """The widths."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        """(N, C, ...) with the last dimensions made larger; the batch dimension may be absent."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        """The widths and the number."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The widths."""
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"


class ConstantPad1d(_ConstantPadNd):
    """``value`` around the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """``value`` around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """``value`` around the last three dimensions."""

    _dims = 3


class ZeroPad1d(_ZeroPadNd):
    """Zeros around the last dimension."""

    _dims = 1


class ZeroPad2d(_ZeroPadNd):
    """Zeros around the last two dimensions."""

    _dims = 2


class ZeroPad3d(_ZeroPadNd):
    """Zeros around the last three dimensions."""

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """The last dimension mirrored at its ends, which are not repeated."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The last two dimensions mirrored at their ends, which are not repeated."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The last three dimensions mirrored at their ends, which are not repeated."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The ends of the last dimension repeated."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The ends of the last two dimensions repeated."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The ends of the last three dimensions repeated."""

    _dims = 3


class CircularPad1d(_CircularPadNd):
    """The last dimension continued from its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """The last two dimensions continued from their other ends."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """The last three dimensions continued from their other ends."""

    _dims = 3
