"""Samplers: which samples of a dataset come, and in what order."""

from itertools import islice

from ... import _C

__all__ = [
    "Sampler", "SequentialSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler", "BatchSampler",
]  # fmt: skip


class Sampler:
    """Gives numbers of samples, or lists of them: a subclass defines ``__iter__`` and, mostly, ``__len__``."""

    def __class_getitem__(cls, _):
        return cls

    def __iter__(self):
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler):
    """All samples in order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """All samples in an order drawn at random, or ``num_samples`` draws with ``replacement``.

    Without a generator each pass seeds one of its own from the default generator.
    """

    _DRAWN_AT_ONCE = 32

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self):
        """How many samples come; the dataset's length unless it was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _own_generator(self):
        generator = _C.Generator()
        generator.manual_seed(int(_C.empty((), dtype=_C.int64).random_().item()))
        return generator

    def __iter__(self):
        n = len(self.data_source)
        generator = self._own_generator() if self.generator is None else self.generator
        left = self.num_samples
        while left > 0:
            if self.replacement:  # a full draw comes first, the remainder last: the stream depends on it
                count = min(left, self._DRAWN_AT_ONCE)
                drawn = _C.randint(high=n, size=(count,), dtype=_C.int64, generator=generator).tolist()
            else:
                drawn = _C.randperm(n, generator=generator).tolist()[:left]
                if not drawn:
                    return
            yield from drawn
            left -= len(drawn)
        if not self.replacement and self.num_samples % n == 0:
            # PyTorch draws one permutation more, for a remainder that is empty here.
            _C.randperm(n, generator=generator)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The samples at ``indices`` in an order drawn at random."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """``num_samples`` draws in which sample ``i`` has the probability ``weights[i]``, up to their sum."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights = _C.as_tensor(weights, dtype=_C.float64)
        if weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(weights.shape)}")
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = _C.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` numbers that ``sampler`` gives; the last may be shorter, or left out by ``drop_last``."""

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (bool(rest) and not self.drop_last)
