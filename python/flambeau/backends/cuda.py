"""CUDA's switches, accepted so that programs set them without asking whether there is a device."""

from contextlib import contextmanager

from ._flags import Settings as _Settings


def is_built():
    """Whether flambeau was built with CUDA."""
    return False


matmul = _Settings(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False, fp32_precision="none",
)  # fmt: skip
_flags = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled():
    """Whether flash attention may be used."""
    return _flags["flash"]


def enable_flash_sdp(enabled):
    """Say whether flash attention may be used."""
    _flags["flash"] = enabled


def mem_efficient_sdp_enabled():
    """Whether memory-efficient attention may be used."""
    return _flags["mem_efficient"]


def enable_mem_efficient_sdp(enabled):
    """Say whether memory-efficient attention may be used."""
    _flags["mem_efficient"] = enabled


def math_sdp_enabled():
    """Whether plain attention may be used."""
    return _flags["math"]


def enable_math_sdp(enabled):
    """Say whether plain attention may be used."""
    _flags["math"] = enabled


def cudnn_sdp_enabled():
    """Whether cuDNN's attention may be used."""
    return _flags["cudnn"]


def enable_cudnn_sdp(enabled):
    """Say whether cuDNN's attention may be used."""
    _flags["cudnn"] = enabled


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Say whether plain attention may sum in half precision: it never does."""
    _flags["half sums"] = enabled


def fp16_bf16_reduction_math_sdp_allowed():
    """Whether plain attention may sum in half precision."""
    return _flags.get("half sums", False)


def is_flash_attention_available():
    """Whether CUDA's flash attention is there."""
    return False


def preferred_linalg_library(backend=None):
    """The library for linear algebra on a device; there is none to choose."""
    return "default"


preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """A block in which only some kinds of attention may be used."""
    before = dict(_flags)
    _flags.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _flags.update(before)
