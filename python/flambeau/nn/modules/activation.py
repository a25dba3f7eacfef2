"""Activations: modules without numbers of their own (PReLU aside) around a function of ``nn.functional``."""

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

from .attention import MultiheadAttention

__all__ = [
    "ReLU", "ReLU6", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Softmin", "Softmax2d",
    "LeakyReLU", "ELU", "SELU", "CELU", "Softplus", "Hardtanh", "Hardsigmoid", "Hardswish", "LogSigmoid", "Softsign",
    "Tanhshrink", "Softshrink", "Hardshrink", "Threshold", "PReLU", "GLU", "RReLU", "MultiheadAttention",
]  # fmt: skip


class _Plain(Module):
    """An activation without settings; it takes and ignores any arguments, as PyTorch's do."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Tanh(_Plain):
    """Hyperbolic tangent."""

    def forward(self, input):
        """Element by element."""
        return _C.tanh(input)


class Sigmoid(_Plain):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input):
        """Element by element."""
        return _C.sigmoid(input)


class LogSigmoid(_Plain):
    """``log(1 / (1 + exp(-x)))``."""

    def forward(self, input):
        """Element by element."""
        return F.logsigmoid(input)


class Softsign(_Plain):
    """``x / (1 + |x|)``."""

    def forward(self, input):
        """Element by element."""
        return F.softsign(input)


class Tanhshrink(_Plain):
    """``x - tanh(x)``."""

    def forward(self, input):
        """Element by element."""
        return F.tanhshrink(input)


class _InPlace(Module):
    """An activation whose one setting is whether it writes over its input."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        """Nothing, or inplace=True."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """``max(x, 0)``."""

    def forward(self, input):
        """Element by element."""
        return F.relu(input, inplace=self.inplace)


class SiLU(_InPlace):
    """``x * sigmoid(x)``, also called swish."""

    def forward(self, input):
        """Element by element."""
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``. Source: Misra, 2019."""

    def forward(self, input):
        """Element by element."""
        return F.mish(input, inplace=self.inplace)


class SELU(_InPlace):
    """Self-normalising ELU. Source: Klambauer and others, 2017."""

    def forward(self, input):
        """Element by element."""
        return F.selu(input, self.inplace)


class _InPlaceSilent(_InPlace):
    """As ``_InPlace``, and printed without it."""

    def extra_repr(self):
        """Nothing."""
        return ""


class Hardsigmoid(_InPlaceSilent):
    """``relu6(x + 3) / 6``."""

    def forward(self, input):
        """Element by element."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlaceSilent):
    """``x * relu6(x + 3) / 6``."""

    def forward(self, input):
        """Element by element."""
        return F.hardswish(input, self.inplace)


class GELU(Module):
    """``x`` times the normal distribution function, exact or by tanh. Source: Hendrycks and Gimpel, 2016."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        """Element by element."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        """Which form."""
        return f"approximate={self.approximate!r}"


class _AlongDim(Module):
    """A function along one dimension."""

    __constants__ = ["dim"]

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self):
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(x) / sum(exp(x))`` along ``dim``."""

    def forward(self, input):
        """The same shape; sums to 1 along dim."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax, computed stably."""

    def forward(self, input):
        """The same shape."""
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        """The dimension."""
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """Softmax of the negated input."""

    def forward(self, input):
        """The same shape; sums to 1 along dim."""
        return F.softmin(input, self.dim, _stacklevel=5)


class GLU(_AlongDim):
    """The first half times the sigmoid of the second. Source: Dauphin and others, 2016."""

    def __init__(self, dim=-1):
        super().__init__(dim)

    def forward(self, input):
        """Half the size along dim."""
        return F.glu(input, self.dim)


class Softmax2d(_Plain):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        """The same shape."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class LeakyReLU(Module):
    """``x`` where positive, else ``negative_slope * x``."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        """Element by element."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        """The slope."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class _Alpha(Module):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self):
        """The scale of the negative part."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``. Source: Clevert and others, 2015."""

    def forward(self, input):
        """Element by element."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``. Source: Barron, 2017."""

    def forward(self, input):
        """Element by element."""
        return F.celu(input, self.alpha, self.inplace)


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``, and ``x`` itself where ``beta x > threshold``."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        """Element by element."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        """Both settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardtanh(Module):
    """``x`` clamped to [min_val, max_val]."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        from warnings import warn

        if min_value is not None:
            warn("keyword argument `min_value` is deprecated: use `min_val`", FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warn("keyword argument `max_value` is deprecated: use `max_val`", FutureWarning, stacklevel=2)
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"Hardtanh: max_val {max_val} must be greater than min_val {min_val}")

    def forward(self, input):
        """Element by element."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        """Both ends."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """``x`` clamped to [0, 6]."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        """Nothing, or inplace=True."""
        return "inplace=True" if self.inplace else ""


class _Shrink(Module):
    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        """The threshold."""
        return str(self.lambd)


class Softshrink(_Shrink):
    """``x`` moved towards zero by ``lambd``, and zero within it."""

    def forward(self, input):
        """Element by element."""
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """``x`` where its magnitude exceeds ``lambd``, else zero."""

    def forward(self, input):
        """Element by element."""
        return F.hardshrink(input, self.lambd)


class Threshold(Module):
    """``x`` where it exceeds ``threshold``, else ``value``."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        """Element by element."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        """Both settings."""
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """``x`` where positive, else a learned slope times it, one slope or one a channel. Source: He and others, 2015."""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the slopes to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input):
        """Element by element."""
        return F.prelu(input, self.weight)

    def extra_repr(self):
        """How many slopes."""
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """``x`` above zero, below it times a slope: at random in [lower, upper] in training, their mean else.

    Source: Xu and others, 2015.
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        """The same shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        """The range of slopes."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")
