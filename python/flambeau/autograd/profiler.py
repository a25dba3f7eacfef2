"""The profiler under its older name."""

from ..profiler import EventList, FunctionEvent, record_function
from ..profiler import profile as _profile

__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]


class profile(_profile):
    """A block whose operations are timed, unless it is not ``enabled``."""

    def __init__(self, enabled=True, *, use_device=None, use_cuda=False, record_shapes=False, with_flops=False, **_):
        super().__init__()
        self.enabled = enabled

    def __enter__(self):
        return super().__enter__() if self.enabled else self

    def __exit__(self, *_):
        if self.enabled:
            super().__exit__()

    @property
    def function_events(self):
        """Every run, in order."""
        return self.events()

    def table(self, sort_by=None, row_limit=100, **_):
        """A table with a row for each run."""
        return self.events().table(sort_by, row_limit)

    def __str__(self):
        return self.table()


class emit_nvtx:
    """Marks for NVIDIA's profilers: a block without effect."""

    def __init__(self, enabled=True, record_shapes=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
