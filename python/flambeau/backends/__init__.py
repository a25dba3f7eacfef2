"""Switches of the backends. Those of devices that are not here are accepted and mean nothing."""

__all__ = [
    "cpu", "cuda", "cudnn", "cusparselt", "kleidiai", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp",
    "opt_einsum", "python_native", "quantized",
]  # fmt: skip

fp32_precision = "none"


def __getattr__(name):
    if name in __all__:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no 'backends.{name}' yet")


def __dir__():
    return sorted({*globals(), *__all__})
