"""Where programs look for CUDA's scaler."""

from . import GradScaler

__all__ = ["GradScaler"]
