"""Recurrent networks: plain, LSTM and GRU, whole sequences."""

import math
from numbers import Number

from ... import _C
from ..._tensor import Tensor
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module
from .rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Base of all: weights by layer and direction, all uniform in ±1/sqrt(hidden_size) at the start."""

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip

    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self._check_dropout(dropout)
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings()
        self._flat_weights_names, self._all_weights = [], []
        state = proj_size if proj_size > 0 else hidden_size
        gates = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * self._directions
            shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[: self._directions]:
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(_C.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    # ---- settings

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _check_dropout(self, dropout):
        if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            from warnings import warn

            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )

    def _check_settings(self):
        for name in ("bias", "batch_first"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} should be of type bool, got: {type(getattr(self, name)).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    def extra_repr(self):
        """Sizes, and what differs from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
            ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    # ---- weights

    def _init_flat_weights(self):
        self.__dict__["_flat_weights"] = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in self.__dict__.get("_flat_weights_names", ()) and "_flat_weights" in self.__dict__:
            self._flat_weights[self._flat_weights_names.index(name)] = value

    def flatten_parameters(self):
        """Accepted for PyTorch's sake: where weights lie does not matter here."""

    @property
    def all_weights(self):
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self):
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _apply(self, fn, recurse=True):
        out = super()._apply(fn, recurse)
        self._init_flat_weights()
        return out

    def __getstate__(self):
        state = dict(self.__dict__)
        del state["_flat_weights"]
        return state

    def __setstate__(self, state):
        state.pop("_flat_weight_refs", None)
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self._init_flat_weights()

    # ---- checks

    def check_input(self, input, batch_sizes):
        """Raises unless the input fits the weights."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not _C.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: input.to({dtype}), "
                f"or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_size(self, input, batch_sizes, width):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self.num_layers * self._directions, batch, width

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the hidden state for an input."""
        return self._state_size(input, batch_sizes, self.proj_size if self.proj_size > 0 else self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raises unless a state has a shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises unless input and state fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its batch in another order."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    # ---- forward: a state is a tensor, for LSTM two of them

    def _zero_state(self, input, batch_sizes):
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _each(self, hx, f):
        return f(hx)

    def _check_state_dims(self, hx, dims):
        if hx.dim() != dims:
            kind = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")

    def _function(self):
        return getattr(_C, self.mode.lower())

    def _result(self, found):
        return found[0], found[1]

    def forward(self, input, hx=None):
        """(L, N, input_size), or with ``batch_first`` (N, L, ...), or a packed sequence, or one sequence without N.

        Gives the output of the last layer at every step, and the state after the last.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        single, batch_dim = input.dim() == 2, 0 if self.batch_first else 1
        if single:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zero_state(input, None)
        else:
            self._check_state_dims(hx, 2 if single else 3)
            if single:
                hx = self._each(hx, lambda state: state.unsqueeze(1))
        self.check_forward_args(input, hx, None)
        output, hidden = self._result(
            self._function()(
                input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional, self.batch_first,
            )  # fmt: skip
        )
        if single:
            return output.squeeze(batch_dim), self._each(hidden, lambda state: state.squeeze(1))
        return output, hidden

    def _forward_packed(self, packed, hx):
        data, batch_sizes, order, back = packed
        hx = self._zero_state(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        output, hidden = self._result(
            self._function()(
                data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                self.bidirectional,
            )  # fmt: skip
        )
        return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)


class RNN(RNNBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu with ``nonlinearity="relu"``. Source: Elman, 1990."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """A network with gates that reset and update its state. Source: Cho and others, 2014."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """A network with a cell that gates fill, empty and show; ``proj_size`` projects what it shows.

    Sources: Hochreiter and Schmidhuber, 1997; ``proj_size``: Sak and others, 2014.
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cell for an input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises unless input, hidden state and cell fit."""
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i, (state, size) in enumerate(zip(hidden, sizes)):
            self.check_hidden_size(state, size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx, permutation):
        """The states with their batch in another order."""
        return hx if permutation is None else self._each(hx, lambda state: _apply_permutation(state, permutation))

    def _zero_state(self, input, batch_sizes):
        return (
            input.new_zeros(self.get_expected_hidden_size(input, batch_sizes)),
            input.new_zeros(self.get_expected_cell_size(input, batch_sizes)),
        )

    def _each(self, hx, f):
        return f(hx[0]), f(hx[1])

    def _check_state_dims(self, hx, dims):
        if isinstance(hx, Tensor) or len(hx) != 2:
            raise RuntimeError("LSTM: hx must be a tuple of the hidden state and the cell")
        if hx[0].dim() != dims or hx[1].dim() != dims:
            kind = "batched 3-D" if dims == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _result(self, found):
        return found[0], (found[1], found[2])
