"""Fourier transforms: the native operations of this name."""

from . import _C

globals().update({name[4:]: value for name, value in vars(_C).items() if name.startswith("fft_")})


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'fft.{name}' yet")
