"""Native functions by the names under which PyTorch's modules call them: ``torch._VF.lstm`` and others."""

from . import _C


def __getattr__(name):
    return getattr(_C, name)
