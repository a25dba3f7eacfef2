"""CUDA's switches, accepted so that programs set them without asking whether there is a device."""


def is_built():
    """Whether flambeau was built with CUDA."""
    return False


class _Settings:
    """Attributes that may be set and read, and have no effect."""

    def __init__(self, **settings):
        self.__dict__.update(settings)


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
