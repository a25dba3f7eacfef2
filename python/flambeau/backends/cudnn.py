"""cuDNN's switches, accepted so that programs set them without asking whether there is a device."""

from ._flags import Settings as _Settings
from ._flags import block as _block
from ._flags import setter as _setter

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10
depthwise_kernel = "auto"
fp32_precision = "none"
conv = _Settings(fp32_precision="none")
rnn = _Settings(fp32_precision="none")
_names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
flags = _block(globals(), *_names)
set_flags = _setter(globals(), *_names)
CUDNN_TENSOR_DTYPES = frozenset()


def is_available():
    """Whether cuDNN can be used."""
    return False


def version():
    """Its version; None without it."""
    return None


def is_acceptable(tensor):
    """Whether cuDNN can work on a tensor."""
    return False
