"""Linear algebra: the native operations of this name."""

from . import _C

globals().update({name: value for name, value in vars(_C._linalg).items() if not name.startswith("_")})


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'linalg.{name}' yet")
