"""Sequences of different lengths: padded to one tensor, or packed step by step."""

from collections import namedtuple

from ... import _C
from ..._tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
    "unpad_sequence", "pack_sequence", "unpack_sequence",
]  # fmt: skip


def invert_permutation(permutation):
    """The permutation that undoes ``permutation``; None of None."""
    if permutation is None:
        return None
    out = _C.empty_like(permutation)
    return out.scatter_(0, permutation, _C.arange(permutation.numel(), device=permutation.device))


class PackedSequence(namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])):
    """Sequences sorted by length: ``data`` holds all first steps, then all second ones, ...

    ``batch_sizes`` (on the CPU) says how many sequences have each step; the indices sort the batch, and undo it.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # what pickles of old versions and ``type(x)(*x)`` give
            data, batch_sizes = data[0], data[1]
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually; use "
                f"pack_sequence or pack_padded_sequence. Got a tensor on {batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """``data.to(...)``; the indices go along to another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        order, back = (
            None if index is None else index.to(data.device, **kwargs)
            for index in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, back)

    def pin_memory(self):
        """With ``data`` in pinned memory."""
        order, back = (None if i is None else i.pin_memory() for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(self.data.pin_memory(), self.batch_sizes, order, back)

    def cpu(self, *args, **kwargs):
        """On the CPU."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args, **kwargs):
        """On a CUDA device."""
        return self.to(*args, device=kwargs.pop("device", "cuda"), **kwargs)

    def double(self):
        """With ``data`` in float64."""
        return self.to(dtype=_C.float64)

    def float(self):
        """With ``data`` in float32."""
        return self.to(dtype=_C.float32)

    def half(self):
        """With ``data`` in float16."""
        return self.to(dtype=_C.float16)

    def long(self):
        """With ``data`` in int64."""
        return self.to(dtype=_C.int64)

    def int(self):
        """With ``data`` in int32."""
        return self.to(dtype=_C.int32)

    def short(self):
        """With ``data`` in int16."""
        return self.to(dtype=_C.int16)

    def char(self):
        """With ``data`` in int8."""
        return self.to(dtype=_C.int8)

    def byte(self):
        """With ``data`` in uint8."""
        return self.to(dtype=_C.uint8)

    @property
    def is_cuda(self):
        """Whether ``data`` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether ``data`` is in pinned memory."""
        return self.data.is_pinned()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack (L, N, ...), or with ``batch_first`` (N, L, ...), whose sequences have ``lengths``.

    With ``enforce_sorted`` they have to fall from sequence to sequence, else the batch is sorted.
    """
    lengths = lengths if isinstance(lengths, Tensor) else _C.tensor(lengths, dtype=_C.int64)
    if lengths.dim() != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} tensor"
        )
    order = None
    if not enforce_sorted:
        lengths, order = _C.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    counts = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != steps.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={steps.size(1)})"
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(longer < shorter for longer, shorter in zip(counts, counts[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do "
            "not need ONNX exportability."
        )
    if counts[0] > steps.size(0):
        raise RuntimeError(f"Expected lengths of at most {steps.size(0)}, the sequence's, but got {counts[0]}")
    sizes, parts, at = [], [], 0
    for i in range(len(counts) - 1, -1, -1):  # the shortest one first: with each that ends, fewer go on
        if counts[i] > at:
            part = steps[at : counts[i], : i + 1]
            parts.append(part.reshape(-1, *steps.shape[2:]))
            sizes += [i + 1] * (counts[i] - at)
            at = counts[i]
    return PackedSequence(_C.cat(parts), _C.tensor(sizes, dtype=_C.int64), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Undo ``pack_padded_sequence``: the padded tensor, and the lengths."""
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    data, batch = sequence.data, sizes[0]
    index = _C.zeros(length, batch, dtype=_C.int64)
    padded = _C.ones(length, batch, dtype=_C.bool)
    at = 0
    for step, size in enumerate(sizes):
        index[step, :size] = _C.arange(at, at + size)
        padded[step, :size] = False
        at += size
    out = data.index_select(0, index.reshape(-1).to(data.device)).reshape(length, batch, *data.shape[1:])
    mask = padded.to(data.device).reshape(length, batch, *[1] * (data.dim() - 1))
    out = out.masked_fill(mask, padding_value)
    lengths = (~padded).sum(0)
    if batch_first:
        out = out.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        out = out.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return out, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (L, ...) of different lengths as one, (longest, N, ...) or with ``batch_first`` (N, longest, ...)."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest, rest = max(s.size(0) for s in sequences), sequences[0].shape[1:]
    rows = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            fill = sequence.new_full((missing, *rest), padding_value)
            sequence = _C.cat((sequence, fill) if padding_side == "right" else (fill, sequence))
        rows.append(sequence)
    return _C.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Undo ``pad_sequence``: a list of tensors of these lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(padded_sequences, lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack tensors of different lengths; with ``enforce_sorted`` the longest has to come first."""
    lengths = _C.tensor([sequence.size(0) for sequence in sequences], dtype=_C.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Undo ``pack_sequence``: a list of tensors."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
