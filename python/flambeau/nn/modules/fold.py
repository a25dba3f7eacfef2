"""Windows of images as columns, and back."""

from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class _Windows(Module):
    def extra_repr(self):
        """The settings."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)


class Fold(_Windows):
    """Sums the columns that :class:`Unfold` gives, (N, C k, L), to images, (N, C, H, W)."""

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input):
        """(N, C k, L) to (N, C, H, W); the batch dimension may be absent."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(_Windows):
    """The windows of images, (N, C, H, W), as columns, (N, C k, L)."""

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input):
        """(N, C, H, W) to (N, C k, L); the batch dimension may be absent."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
