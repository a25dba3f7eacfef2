"""Convolutions and transposed convolutions."""

import math

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .lazy import LazyModuleMixin, lazy_parameter
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of all: settings, ``weight`` and ``bias``, both uniform in ±1/sqrt(inputs of one output) at the start."""

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip
    _dims = None

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups,
        bias, padding_mode, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {list(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_widths()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.empty((*channels, *kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(_C.empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _pad_widths(self):
        """The padding as ``pad`` takes it."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        widths = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = dilation * (size - 1) if self.padding == "same" else 0
            widths += [total // 2, total - total // 2]
        return widths

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        """Sizes, and what differs from the defaults."""
        n = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (
            ("padding", ((0,) * n)), ("dilation", (1,) * n), ("output_padding", (0,) * n), ("groups", 1),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != usual:
                text += f", {name}={value}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution in ``_dims`` dimensions."""

    _function = None

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        each = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride),
            padding if isinstance(padding, str) else each(padding), each(dilation), False, each(0), groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._dims
        function = getattr(F, f"conv{self._dims}d")
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        """(N, in_channels, ...) to (N, out_channels, ...); the batch dimension may be absent."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Each output channel is a sum over windows of all input channels, along one dimension."""

    _dims = 1


class Conv2d(_Conv):
    """Each output channel is a sum over windows of all input channels, over two dimensions."""

    _dims = 2


class Conv3d(_Conv):
    """Each output channel is a sum over windows of all input channels, over three dimensions."""

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution in ``_dims`` dimensions, which turns its output's shape into its input's."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        each = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
            each(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The output padding that gives ``output_size``."""
        if output_size is None:
            return _ntuple(num_spatial_dims)(self.output_padding)
        n = num_spatial_dims
        others = 2 if input.dim() == n + 2 else 1
        if len(output_size) == others + n:
            output_size = output_size[others:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {others + n} elements (got "
                f"{len(output_size)})"
            )
        least = [
            (input.size(d + others) - 1) * stride[d]
            - 2 * padding[d]
            + (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        most = [least[d] + stride[d] - 1 for d in range(n)]
        if any(not low <= size <= high for size, low, high in zip(output_size, least, most)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an input "
                f"of {input.size()[2:]})"
            )
        return [output_size[d] - least[d] for d in range(n)]

    def forward(self, input, output_size=None):
        """(N, in_channels, ...) to (N, out_channels, ...); ``output_size`` chooses among the sizes that fit."""
        padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._dims, self.dilation
        )
        function = getattr(F, f"conv_transpose{self._dims}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of :class:`Conv1d`."""

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of :class:`Conv2d`."""

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of :class:`Conv3d`."""

    _dims = 3


class _LazyConv(LazyModuleMixin):
    """A convolution that learns its number of input channels from its first input."""

    def __init__(self, out_channels, kernel_size, *args, **kwargs):
        names = ("stride", "padding", "output_padding", "groups", "bias", "dilation") if self._transposed() else (
            "stride", "padding", "dilation", "groups", "bias"
        )  # fmt: skip
        given = dict(zip((*names, "padding_mode", "device", "dtype"), args), **kwargs)
        bias = given.pop("bias", True)
        super().__init__(0, 0, kernel_size, bias=False, **given)
        self.out_channels = out_channels
        self.weight = lazy_parameter(given)
        if bias:
            self.bias = lazy_parameter(given)

    @classmethod
    def _transposed(cls):
        return issubclass(cls, _ConvTransposeNd)

    def reset_parameters(self):
        """Draw weight and bias, once their shape is known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Make weight and bias for this input."""
        if not self.has_uninitialized_params():
            return
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {self.__class__.__name__}, but got input "
                f"of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            channels = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConv, Conv1d):
    """:class:`Conv1d` that learns ``in_channels`` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """:class:`Conv2d` that learns ``in_channels`` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """:class:`Conv3d` that learns ``in_channels`` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """:class:`ConvTranspose1d` that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """:class:`ConvTranspose2d` that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """:class:`ConvTranspose3d` that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose3d
