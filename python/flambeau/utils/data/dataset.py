"""Datasets: samples by number, or one after another."""

import math
from bisect import bisect_right
from itertools import accumulate

from ... import _C

__all__ = [
    "Dataset", "IterableDataset", "TensorDataset", "StackDataset", "ConcatDataset", "ChainDataset", "Subset",
    "random_split",
]  # fmt: skip


class Dataset:
    """Samples by number: a subclass defines ``__getitem__`` and, mostly, ``__len__``.

    ``__getitems__(indices)``, where defined, gives the samples of a whole batch at once.
    """

    def __class_getitem__(cls, _):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after another: a subclass defines ``__iter__``."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors that have the same first size: sample ``i`` is the tuple of their rows ``i``."""

    def __init__(self, *tensors):
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError(f"Size mismatch between tensors: first sizes {[tensor.size(0) for tensor in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Datasets side by side: sample ``i`` is the tuple, or dictionary, of their samples ``i``."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets either by position, for tuples, or by name, for dictionaries")
        self.datasets = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if len(lengths) > 1:
            raise ValueError(f"Size mismatch between datasets: lengths {sorted(lengths)}")
        (self._length,) = lengths

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Datasets one after another, by number."""

    @staticmethod
    def cumsum(sequence):
        """The running sums of the lengths."""
        return list(accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset):
    """Iterable datasets one after another."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset):
    """The samples of ``dataset`` at ``indices``."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        wanted = [self.indices[i] for i in indices]
        whole = getattr(self.dataset, "__getitems__", None)
        return whole(wanted) if callable(whole) else [self.dataset[i] for i in wanted]

    def __len__(self):
        return len(self.indices)


def _sizes(total, lengths):
    """Sizes of parts from sizes, or from shares that sum to one: what rounding leaves goes to the first parts."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                from warnings import warn

                warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
        lengths = sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    return lengths


def random_split(dataset, lengths, generator=None):
    """Disjoint subsets of the given sizes, or shares, in an order drawn at random."""
    sizes = _sizes(len(dataset), lengths)
    order = _C.randperm(sum(sizes), generator=generator).tolist()
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes)]
