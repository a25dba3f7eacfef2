"""Pooling: the largest element, mean or norm of windows."""

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
]  # fmt: skip


class _Pool(Module):
    """Base of all: settings by name, a function of ``nn.functional`` by name."""

    _dims = None

    def extra_repr(self):
        """The settings."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


class _MaxPoolNd(_Pool):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return_indices = False
    ceil_mode = False

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """(N, C, ...) to (N, C, ...); the batch dimension may be absent."""
        return getattr(F, f"max_pool{self._dims}d")(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of one dimension; with ``return_indices`` its place too."""

    _dims = 1


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of two dimensions; with ``return_indices`` its place too."""

    _dims = 2


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of three dimensions; with ``return_indices`` its place too."""

    _dims = 3


class _MaxUnpoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)

    def forward(self, input, indices, output_size=None):
        """Values and places of a max pooling to what was pooled, with zeros elsewhere."""
        function = getattr(F, f"max_unpool{self._dims}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """The values of :class:`MaxPool1d` back where they were, zeros elsewhere."""

    _dims = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The values of :class:`MaxPool2d` back where they were, zeros elsewhere."""

    _dims = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The values of :class:`MaxPool3d` back where they were, zeros elsewhere."""

    _dims = 3


class AvgPool1d(_Pool):
    """The mean of each window of one dimension."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        each = _ntuple(1)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        """(N, C, L) to (N, C, L'); the batch dimension may be absent."""
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolNd(_Pool):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
    _shown = ("kernel_size", "stride", "padding")

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        """(N, C, ...) to (N, C, ...); the batch dimension may be absent."""
        return getattr(F, f"avg_pool{self._dims}d")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of two dimensions."""

    _dims = 2


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of three dimensions."""

    _dims = 3


class _FractionalMaxPoolNd(_Pool):
    """Windows of about equal sizes at random places. Source: Graham, "Fractional max-pooling", 2014."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _shown = ()

    def __init__(
        self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"only one of output_size and output_ratio may be specified, for {name}")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        """(N, C, ...) to (N, C, output_size); the batch dimension may be absent."""
        return getattr(F, f"fractional_max_pool{self._dims}d")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling of two dimensions to any smaller size, over windows at random places."""

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling of three dimensions to any smaller size, over windows at random places."""

    _dims = 3


class _LPPoolNd(_Pool):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """(N, C, ...) to (N, C, ...); the batch dimension may be absent."""
        function = getattr(F, f"lp_pool{self._dims}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of one dimension."""

    _dims = 1


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of two dimensions."""

    _dims = 2


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of three dimensions."""

    _dims = 3


class _AdaptiveMaxPoolNd(_Pool):
    __constants__ = ["output_size", "return_indices"]
    _shown = ("output_size",)

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        """(N, C, ...) to (N, C, output_size); the batch dimension may be absent."""
        return getattr(F, f"adaptive_max_pool{self._dims}d")(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` parts of one dimension."""

    _dims = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` parts of two dimensions; None keeps a size."""

    _dims = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest elements of ``output_size`` parts of three dimensions; None keeps a size."""

    _dims = 3


class _AdaptiveAvgPoolNd(_Pool):
    __constants__ = ["output_size"]
    _shown = ("output_size",)

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        """(N, C, ...) to (N, C, output_size); the batch dimension may be absent."""
        return getattr(F, f"adaptive_avg_pool{self._dims}d")(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of ``output_size`` parts of one dimension."""

    _dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of ``output_size`` parts of two dimensions; None keeps a size."""

    _dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of ``output_size`` parts of three dimensions; None keeps a size."""

    _dims = 3
