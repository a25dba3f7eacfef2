"""oneDNN: flambeau has kernels of its own instead."""

from ._flags import Settings as _Settings
from ._flags import block as _block
from ._flags import setter as _setter

enabled = False
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul, conv, rnn = (_Settings(fp32_precision="none") for _ in range(3))
VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
_names = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
flags = _block(globals(), *_names)
set_flags = _setter(globals(), *_names)


def is_available():
    """Whether oneDNN is used."""
    return False


class verbose:
    """A block in which oneDNN would print what it does."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
