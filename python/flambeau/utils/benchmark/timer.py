"""``Timer``: how long a statement takes, with one thread unless told otherwise."""

import statistics
import timeit
from dataclasses import dataclass, field
from enum import Enum
from time import perf_counter as timer

from ... import _C

__all__ = ["CallgrindStats", "Language", "Measurement", "TaskSpec", "Timer", "timer"]


class Language(Enum):
    """What a statement is written in; only Python is timed."""

    PYTHON = 0
    CPP = 1


@dataclass(repr=False, eq=False, frozen=True)
class TaskSpec:
    """What is timed."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """A name for it."""
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")


def select_unit(t):
    """A unit in which a time is a number between 1 and 1000, and its length in seconds."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if t >= length:
            return unit, length
    return "ns", 1e-9


@dataclass(repr=False)
class Measurement:
    """Times of a statement, each over ``number_per_run`` calls."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None
    _sorted: list = field(init=False, default=None)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self):
        """Seconds of one call, run by run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        """The middle one of the times."""
        return statistics.median(self.times)

    @property
    def mean(self):
        """Their mean."""
        return statistics.fmean(self.times)

    def _quantile(self, q):
        times = sorted(self.times)
        at = q * (len(times) - 1)
        low = int(at)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (at - low)

    @property
    def iqr(self):
        """From a quarter to three quarters of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self):
        """How many digits of the median mean something."""
        from math import ceil, log10

        spread = 1.25 * self.iqr / max(len(self.raw_times), 1) ** 0.5 / max(self.median, 1e-30)
        return 5 if spread <= 0 else max(1, min(5, int(ceil(-log10(spread)))))

    @property
    def has_warnings(self):
        """Whether the times scatter so much that they mean little."""
        return self.iqr / max(self.median, 1e-30) > 0.1

    @property
    def title(self):
        """The name of what was timed."""
        return self.task_spec.title

    @property
    def as_row_name(self):
        """Its name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt

    def __repr__(self):
        unit, length = select_unit(self.median)
        runs = f"{len(self.raw_times)} measurement{'s' if len(self.raw_times) > 1 else ''}"
        lines = [f"{type(self).__module__}.Measurement object", self.title]
        if len(self.raw_times) > 1:
            lines.append(f"  Median: {self.median / length:.2f} {unit}")
            lines.append(
                f"  IQR:    {self.iqr / length:.2f} {unit} ({self._quantile(0.25) / length:.2f} to {self._quantile(0.75) / length:.2f})"
            )
        else:
            lines.append(f"  {self.median / length:.2f} {unit}")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {runs}, {self.number_per_run} runs per measurement, {threads}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements):
        """One measurement of all those of the same statement."""
        groups = {}
        for m in measurements:
            groups.setdefault((m.task_spec.title, m.task_spec.description, m.number_per_run), []).append(m)
        return [
            Measurement(ms[0].number_per_run, [t for m in ms for t in m.raw_times], ms[0].task_spec)
            for ms in groups.values()
        ]


class CallgrindStats:
    """Counts of instructions: flambeau does not run Valgrind."""


class Timer:
    """Times a statement.

    >>> Timer("x + x", globals={"x": 1}).timeit(100).number_per_run
    100
    """

    _timer_cls = timeit.Timer

    def __init__(
        self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None,
        description=None, env=None, num_threads=1, language=Language.PYTHON,
    ):  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("benchmark.Timer: flambeau times Python alone, not C++")
        from textwrap import dedent

        from ... import cuda  # noqa: F401  (statements may ask for it)
        from ... import __name__ as package
        import sys

        self._globals = dict(globals or {})
        self._globals.setdefault("torch", sys.modules[package])
        stmt, setup = dedent(stmt).strip(), dedent(setup).strip()
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._timer = self._timer_cls(stmt=stmt, setup=setup or "pass", timer=timer, globals=self._globals)

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def _threads(self):
        return _Threads(self._task_spec.num_threads)

    def timeit(self, number=1000000):
        """The statement ``number`` times, after a hundredth as many to warm up."""
        with self._threads():
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def _block_size(self, min_run_time):
        number, taken = 1, self._timeit(1)
        while taken < min_run_time / 1000 and number < 1_000_000_000:
            number *= 10 if taken < min_run_time / 20000 else 2
            taken = self._timeit(number)
        return number

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """As many calls as fill ``min_run_time`` seconds, in blocks long enough to time."""
        with self._threads():
            number = self._block_size(min_run_time)
            times, total = [], 0.0
            while total < min_run_time or not times:
                taken = self._timeit(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
            return Measurement(number, times, self._task_spec)

    def autorange(self, callback=None):
        """``blocked_autorange`` as Python's ``timeit`` calls it."""
        return self.blocked_autorange(callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Blocks until the times scatter by less than ``threshold``, or ``max_run_time`` is over."""
        with self._threads():
            number = self._block_size(min_run_time)
            times, total = [], 0.0
            while total < max_run_time:
                times.append(self._timeit(number))
                total += times[-1]
                made = Measurement(number, times, self._task_spec)
                if callback is not None:
                    callback(number, times[-1])
                if total >= min_run_time and len(times) > 3 and made.iqr / made.median < threshold:
                    break
            return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args, **kwargs):
        """Count instructions: refused."""
        raise NotImplementedError("benchmark.Timer.collect_callgrind: flambeau does not run Valgrind")


class _Threads:
    """A block with a number of threads."""

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self.before = _C.get_num_threads()
        _C.set_num_threads(self.number)

    def __exit__(self, *_):
        _C.set_num_threads(self.before)
