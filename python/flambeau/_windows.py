"""``torch.hann_window`` and its kin: the windows of ``signal.windows`` by their older names, periodic unless asked."""

from . import _C
from .signal import windows


def _made(name, length, periodic, make, dtype, layout, device, requires_grad):
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if layout is not None and layout != _C.strided:
        raise RuntimeError(f"{name} is not implemented for layouts other than strided, got: {layout}")
    dtype = dtype or _C.get_default_dtype()
    wide = dtype if dtype == _C.float64 else _C.float32
    window = make(int(length), sym=not periodic, dtype=wide, device=device).to(dtype)
    return window.requires_grad_() if requires_grad else window


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """``0.5 - 0.5 * cos(k)`` over one period, of ``window_length`` weights."""
    return _made("hann_window", window_length, periodic, windows.hann, dtype, layout, device, requires_grad)


def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False
):
    """``alpha - beta * cos(k)`` over one period, of ``window_length`` weights."""

    def make(length, **options):
        if length == 1:
            options.pop("sym")
            return _C.ones((1,), **options)
        return windows.general_cosine(length, a=[alpha, beta], **options)

    return _made("hamming_window", window_length, periodic, make, dtype, layout, device, requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """``0.42 - 0.5 * cos(k) + 0.08 * cos(2k)`` over one period, of ``window_length`` weights."""

    def make(length, **options):
        if length == 1:
            options.pop("sym")
            return _C.ones((1,), **options)
        return windows.blackman(length, **options).abs()

    return _made("blackman_window", window_length, periodic, make, dtype, layout, device, requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A triangle of ``window_length`` weights."""
    return _made("bartlett_window", window_length, periodic, windows.bartlett, dtype, layout, device, requires_grad)


def kaiser_window(
    window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False
):
    """Kaiser's window of ``window_length`` weights; a larger ``beta`` makes it narrower."""
    make = lambda length, **options: windows.kaiser(length, beta=beta, **options)  # noqa: E731
    return _made("kaiser_window", window_length, periodic, make, dtype, layout, device, requires_grad)
