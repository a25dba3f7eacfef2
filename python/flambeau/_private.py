"""Names of PyTorch's native module that programs reach for, with the answer of a program that runs eagerly."""

from . import _C


def _get_tracing_state():
    """The trace that is going on: None."""


def _log_api_usage_once(*_):
    """Tell PyTorch's authors what is used: nothing is told."""


def _set(*_):
    """A switch of a compiler: accepted, there is none."""


def _no(*_):
    """False: there is no such thing."""
    return False


def _none_there(*_):
    """0: there is no such device."""
    return 0


_C._get_tracing_state = _get_tracing_state
_C._log_api_usage_once = _log_api_usage_once
for _name in (
    "_jit_set_profiling_executor", "_jit_set_profiling_mode", "_jit_override_can_fuse_on_cpu", "_jit_override_can_fuse_on_gpu",
    "_jit_set_texpr_fuser_enabled", "_jit_set_nvfuser_enabled", "_jit_set_bailout_depth", "_set_graph_executor_optimize",
    "_set_worker_signal_handlers", "_set_math_sdp_allow_fp16_bf16_reduction",
):  # fmt: skip
    setattr(_C, _name, _set)
for _name in (
    "_is_tracing",
    "_has_cuda",
    "_has_mps",
    "_get_cudnn_enabled",
    "_cuda_isInBadFork",
    "_is_compiled_with_cuda",
):
    setattr(_C, _name, _no)
_C.has_cuda = _C.has_mps = _C.has_mkl = _C.has_lapack = False
_C._cuda_getDeviceCount = _none_there
del _name
