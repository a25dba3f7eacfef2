"""Mixed precision: products in half precision, sums and losses in single, and gradients that do not underflow.

>>> import flambeau as torch
>>> a, b = torch.ones(2, 2), torch.ones(2, 2)
>>> with torch.autocast("cpu", dtype=torch.bfloat16):
...     (a @ b).dtype, (a + b).dtype
(torch.bfloat16, torch.float32)
"""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
