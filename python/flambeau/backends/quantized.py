"""Quantized kernels: flambeau has none yet."""

engine = "none"
supported_engines = ["none"]
