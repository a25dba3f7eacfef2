"""The loader: batches of a dataset, in this process."""

from ... import _C
from ._utils.collate import default_collate, default_convert
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate"]


def get_worker_info():
    """What a worker process knows of itself; None in the main process, which is where flambeau loads."""
    return None


class _Endless(Sampler):
    """Stands for the order of an iterable dataset, which has its own."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Batches of ``dataset``: what ``sampler`` or ``batch_sampler`` names, joined by ``collate_fn``.

    ``batch_size=None`` gives single samples. Everything runs in the calling process: ``num_workers`` above 0 is
    refused. ``pin_memory``, ``worker_init_fn`` and the like are accepted and have no effect there.

    >>> loader = DataLoader(range(5), batch_size=2)
    >>> [batch.tolist() for batch in loader]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
        pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None,
        *, prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True,
    ):  # fmt: skip
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator
        iterable = self._iterable = isinstance(dataset, IterableDataset)
        shuffle = False if shuffle is None and not iterable else shuffle
        if iterable:
            self._refuse_order(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn

    def __class_getitem__(cls, _):
        return cls

    @staticmethod
    def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing.")
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if num_workers > 0:
            raise NotImplementedError(
                f"DataLoader with num_workers={num_workers}: flambeau loads in the main process only, for now; "
                "use num_workers=0"
            )

    @staticmethod
    def _refuse_order(shuffle, sampler, batch_sampler):
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )

    def __iter__(self):
        # Drawn for every pass, as PyTorch does, also where no worker is seeded by it: the stream goes on the same.
        self._base_seed = _C.empty((), dtype=_C.int64).random_(generator=self.generator).item()
        return self._batches_of_iterable() if self._iterable else self._batches_by_number()

    def _batches_by_number(self):
        dataset, collate_fn = self.dataset, self.collate_fn
        if self.batch_sampler is None:
            for index in self.sampler:
                yield collate_fn(dataset[index])
            return
        whole = getattr(dataset, "__getitems__", None)
        for indices in self.batch_sampler:
            yield collate_fn(whole(indices) if whole else [dataset[i] for i in indices])

    def _batches_of_iterable(self):
        samples = iter(self.dataset)
        if self.batch_sampler is None:
            for sample in samples:
                yield self.collate_fn(sample)
            return
        batch = []
        for sample in samples:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self):
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        samples = len(self.dataset)
        if self.batch_size is None:
            return samples
        whole, rest = divmod(samples, self.batch_size)
        return whole + (bool(rest) and not self.drop_last)
