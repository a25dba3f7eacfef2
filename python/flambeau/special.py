"""Special functions: the native operations of this name."""

from . import _C

globals().update({name: value for name, value in vars(_C._special).items() if not name.startswith("_")})
round = _C.round


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'special.{name}' yet")
