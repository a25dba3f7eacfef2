"""Samples into batches: tensors, numbers, strings, and containers of them."""

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from .... import _C
from ...._tensor import Tensor

_REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_numpy(value):
    """Whether ``value`` is NumPy's, told without importing NumPy."""
    cls = type(value)
    return cls.__module__ == "numpy" and cls.__name__ not in ("str_", "bytes_", "string_", "unicode_")


def _like(container, items):
    """``items`` in a container of the class of ``container``, or in a plain one where that cannot be made."""
    try:
        if isinstance(container, MutableMapping):
            from copy import copy

            made = copy(container)
            made.update(items)
            return made
        return type(container)(items)
    except TypeError:  # the class wants other arguments
        return items


def default_convert(data):
    """NumPy arrays and numbers as tensors, within containers; all else as it is."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if _is_numpy(data):
        if data.dtype.kind in "SaUO":
            return data
        return _C.as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple):
        values = [default_convert(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence):
        return _like(data, [default_convert(value) for value in data])
    return data


def _collate_sequence(batch, collate_fn_map):
    first = batch[0]
    samples = iter(batch)
    length = len(next(samples))
    if any(len(sample) != length for sample in samples):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    if isinstance(first, MutableSequence):
        from copy import copy

        try:
            made = copy(first)
            for i, column in enumerate(columns):
                made[i] = column
            return made
        except TypeError:
            return columns
    return _like(first, columns)


def collate(batch, *, collate_fn_map=None):
    """``batch``, a list of samples of one structure, as that structure of batches.

    ``collate_fn_map`` gives, for classes of samples, the function that joins them.
    """
    first = batch[0]
    for cls, join in (collate_fn_map or {}).items():
        if isinstance(first, cls):
            return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like(first, {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequence(batch, collate_fn_map)
    if _is_numpy(first):
        return collate_numpy(batch, collate_fn_map=collate_fn_map)
    raise TypeError(_REFUSED.format(type(first)))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors of one shape, stacked."""
    return _C.stack(list(batch), 0)


def collate_numpy(batch, *, collate_fn_map=None):
    """NumPy arrays of one shape stacked, NumPy numbers as one tensor."""
    first = batch[0]
    if first.shape == ():
        return _C.as_tensor(batch)
    if first.dtype.kind in "SaUO":
        raise TypeError(_REFUSED.format(first.dtype))
    return collate([_C.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Numbers as a tensor of float64."""
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Integers as a tensor of int64, truth values as one of bool."""
    return _C.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings as they are: a list."""
    return batch


default_collate_fn_map = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Samples joined along a new first dimension.

    >>> default_collate([(flambeau.ones(2), 0), (flambeau.zeros(2), 1)])
    [tensor([[1., 1.],
            [0., 0.]]), tensor([0, 1])]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
