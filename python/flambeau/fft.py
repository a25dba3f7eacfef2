"""Fourier transforms: the native operations of this name."""

from . import _C
from ._tensor import Tensor  # noqa: F401

globals().update({name[4:]: value for name, value in vars(_C).items() if name.startswith("fft_")})


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'fft.{name}' yet")
