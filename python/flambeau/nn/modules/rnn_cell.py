"""Recurrent networks, one step."""

import math

from ... import _C
from .. import init
from ..parameter import Parameter
from .module import Module


class RNNCellBase(Module):
    """Base of the cells: weights for the input and for the state, uniform in ±1/sqrt(hidden_size) at the start."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size), "bias_ih": rows, "bias_hh": rows}
        for name, shape in shapes.items():
            made = Parameter(_C.empty(shape, device=device, dtype=dtype)) if bias or "weight" in name else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def extra_repr(self):
        """Sizes, and what differs from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self):
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, input, states, names=("hidden",)):
        cls = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{cls}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for name, state in zip(names, states or ()):
            if state.dim() not in (1, 2):
                raise ValueError(f"{cls}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, function, input, hx):
        """One step of a cell whose state is one tensor; the batch dimension may be absent."""
        self._check(input, None if hx is None else (hx,))
        single = input.dim() == 1
        if single:
            input, hx = input.unsqueeze(0), None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = input.new_zeros(input.size(0), self.hidden_size)
        out = function(input, hx, *self._weights())
        return out.squeeze(0) if single else out


class RNNCell(RNNCellBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu with ``nonlinearity="relu"``."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        """(N, input_size) and the state to the next state, (N, hidden_size)."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(getattr(_C, f"rnn_{self.nonlinearity}_cell"), input, hx)


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`, in one layer and direction."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        """(N, input_size) and ``(h, c)`` to the next ``(h, c)``, each (N, hidden_size)."""
        self._check(input, hx, ("hx[0]", "hx[1]"))
        single = input.dim() == 1
        if single:
            input, hx = input.unsqueeze(0), None if hx is None else [state.unsqueeze(0) for state in hx]
        if hx is None:
            zeros = input.new_zeros(input.size(0), self.hidden_size)
            hx = (zeros, zeros)
        h, c = _C.lstm_cell(input, hx, *self._weights())
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`, in one layer and direction."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        """(N, input_size) and the state to the next state, (N, hidden_size)."""
        return self._step(_C.gru_cell, input, hx)
