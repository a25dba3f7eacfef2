"""Modules over several devices or processes. One of each is what there is; it works the same."""

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "replicate",
    "scatter",
    "parallel_apply",
    "gather",
]


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"nn.parallel.{name}: flambeau has no accelerators yet, so there is nothing to spread over"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Over several devices: refused, there is one."
    return refuse


replicate, scatter, gather = _refuse("replicate"), _refuse("scatter"), _refuse("gather")


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Each module on its inputs."""
    kwargs_tup = kwargs_tup or ({},) * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs)
        for module, given, kwargs in zip(modules, inputs, kwargs_tup, strict=True)
    ]
