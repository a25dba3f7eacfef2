"""Linear algebra: the native operations of this name."""

from . import _C

globals().update({name: value for name, value in vars(_C._linalg).items() if not name.startswith("_")})
globals().update({name[7:]: value for name, value in vars(_C).items() if name.startswith("linalg_")})
LinAlgError, matmul = _C._LinAlgError, _C.matmul
common_notes = {}  # what PyTorch's texts are made of; flambeau's are written out


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'linalg.{name}' yet")
