"""Window functions: ``M`` weights that fade towards both ends.

``sym=True`` gives a symmetric window, for filters; ``sym=False`` a periodic one, for spectra.
"""

from math import pi, sqrt

from .. import _C

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _checked(name, M, dtype, layout):
    """The dtype of the window."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout != _C.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _one(name, dtype, layout, device, requires_grad):
    """The window of one place."""
    return _C.ones((1,), dtype=_checked(name, 1, dtype, layout), device=device, requires_grad=requires_grad)


def _window(name, M, sym, dtype, layout, device, requires_grad, start, step, f):
    """``f`` of ``M`` places that are ``step(n)`` apart from ``start(n)`` on, where ``n`` is the window's period."""
    dtype = _checked(name, M, dtype, layout)
    if M == 0:
        return _C.empty((0,), dtype=dtype, device=device, requires_grad=requires_grad)
    n = M if not sym and M > 1 else M - 1
    first = start(n)
    k = _C.linspace(first, first + (M - 1) * step(n), M, dtype=dtype, device=device)
    made = f(k)
    return made.requires_grad_() if requires_grad else made


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``exp(-|k - center| / tau)``; ``center`` is the middle unless given, for a window that is not symmetric."""
    if tau <= 0:
        raise ValueError(f"exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("exponential: Center must be None for symmetric windows")
    where = lambda n: n / 2 if center is None else center  # noqa: E731
    return _window("exponential", M, sym, dtype, layout, device, requires_grad, lambda n: -where(n) / tau, lambda n: 1 / tau,
                   lambda k: (-k.abs()).exp())  # fmt: skip


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Half a wave: ``sin(pi * (k + 0.5) / M)``."""
    step = lambda n: pi / (n + 1)  # noqa: E731
    return _window("cosine", M, sym, dtype, layout, device, requires_grad, lambda n: 0.5 * step(n), step, lambda k: k.sin())


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``exp(-(k / std) ** 2 / 2)``, counted from the middle."""
    if std <= 0:
        raise ValueError(f"gaussian: Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * sqrt(2))
    return _window("gaussian", M, sym, dtype, layout, device, requires_grad, lambda n: -n / 2 * step, lambda n: step,
                   lambda k: (-(k * k)).exp())  # fmt: skip


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``i0(sqrt(beta ** 2 - k ** 2)) / i0(beta)`` for ``k`` from ``-beta`` to ``beta`` (Kaiser, 1974)."""
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got: {beta} instead.")
    if M == 1:
        return _one("kaiser", dtype, layout, device, requires_grad)

    def f(k):
        top = _C.tensor(beta, dtype=k.dtype, device=k.device)
        return _C.i0((top * top - k.clamp(-beta, beta).square()).clamp_min(0).sqrt()) / _C.i0(top)

    return _window("kaiser", M, sym, dtype, layout, device, requires_grad, lambda n: -beta, lambda n: 2 * beta / n, f)


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``a[0] - a[1] cos(k) + a[2] cos(2k) - ...`` over one period."""
    if not hasattr(a, "__iter__"):
        raise TypeError("general_cosine: Coefficients must be a list/tuple")
    if not a:
        raise ValueError("general_cosine: Coefficients cannot be empty")
    if M == 1:
        return _one("general_cosine", dtype, layout, device, requires_grad)

    def f(k):
        terms = [(-1) ** i * weight * (k * i).cos() for i, weight in enumerate(a)]
        return _C.stack(terms).sum(0)

    return _window("general_cosine", M, sym, dtype, layout, device, requires_grad, lambda n: 0.0, lambda n: 2 * pi / max(n, 1), f)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``alpha - (1 - alpha) * cos(k)`` over one period."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """`general_hamming` with ``alpha=0.54``."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """`general_hamming` with ``alpha=0.5``."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """`general_cosine` with the weights 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """`general_cosine` with Nuttall's four weights of least sidelobes (1981)."""
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle: ``1 - |k|`` for ``k`` from -1 to 1."""
    if M == 1:
        return _one("bartlett", dtype, layout, device, requires_grad)
    return _window("bartlett", M, sym, dtype, layout, device, requires_grad, lambda n: -1.0, lambda n: 2 / n, lambda k: 1 - k.abs())
