"""Dropout: zeros at random in training."""

from .. import functional as F
from .module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, zeroes each element with probability ``p`` and scales the rest by 1/(1-p); else the identity."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """The same shape."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        """The probability, and whether it writes over its input."""
        return f"p={self.p}, inplace={self.inplace}"
