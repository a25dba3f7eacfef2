"""What a profiler saw, and its tables."""

import json
import os

__all__ = ["EventList", "FunctionEvent"]


def _shown(microseconds):
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


class _Range:
    """From when to when, in microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """How long."""
        return self.end - self.start


class FunctionEvent:
    """One run of an operation or of a named block, or several of them taken together. Times in microseconds."""

    device_time = device_time_total = self_device_time_total = cuda_time = cuda_time_total = self_cuda_time_total = 0
    cpu_memory_usage = self_cpu_memory_usage = 0
    input_shapes = stack = ()
    is_async = is_remote = False

    def __init__(self, name, start, end, thread):
        self.name = self.key = name
        self.time_range = _Range(start, end)
        self.thread = thread
        self.count = 1
        self.cpu_time_total = end - start
        self.self_cpu_time_total = end - start
        self.cpu_parent, self.cpu_children = None, []

    @property
    def cpu_time(self):
        """Mean time of a run."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: _shown(self.cpu_time))
    cpu_time_total_str = property(lambda self: _shown(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: _shown(self.self_cpu_time_total))

    def _take_in(self, other):
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total

    def __repr__(self):
        return (
            f"<FunctionEvent {self.key}: {self.count} calls, self {self.self_cpu_time_total_str}, "
            f"total {self.cpu_time_total_str}>"
        )


FunctionEventAvg = FunctionEvent


def nested(records):
    """Events of records (name, start, end in nanoseconds, thread), each knowing what ran inside it."""
    events = []
    stacks = {}
    for name, start, end, thread in sorted(records, key=lambda r: (r[1], -r[2])):
        event = FunctionEvent(name, start / 1e3, end / 1e3, thread)
        stack = stacks.setdefault(thread, [])
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            event.cpu_parent = stack[-1]
            stack[-1].cpu_children.append(event)
            stack[-1].self_cpu_time_total -= event.cpu_time_total
        stack.append(event)
        events.append(event)
    return EventList(events)


class EventList(list):
    """Events, single or averaged."""

    @property
    def self_cpu_time_total(self):
        """The time of all, each moment counted once."""
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """The runs of each name taken together."""
        found = {}
        for event in self:
            if event.key in found:
                found[event.key]._take_in(event)
            else:
                found[event.key] = made = FunctionEvent(event.key, 0.0, 0.0, event.thread)
                made.count, made.cpu_time_total = event.count, event.cpu_time_total
                made.self_cpu_time_total = event.self_cpu_time_total
        return EventList(sorted(found.values(), key=lambda e: e.key))

    def total_average(self):
        """All events taken together."""
        total = FunctionEvent("Total", 0.0, 0.0, None)
        total.count = 0
        for event in self:
            total._take_in(event)
        return total

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        header=None,
        top_level_events_only=False,
        **_,
    ):
        """A table with a row for each event, the largest ``sort_by`` first."""
        rows = [e for e in self if not top_level_events_only or e.cpu_parent is None]
        if sort_by is not None:
            field = sort_by.replace("cuda", "device")
            rows.sort(key=lambda e: getattr(e, field), reverse=True)
        total = self.self_cpu_time_total or 1e-9
        rows = rows if row_limit < 0 else rows[:row_limit]
        width = min(max([len(e.key) for e in rows] + [4]), max_name_column_width)
        names = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
        line = "  ".join(["-" * width, *["-" * 12] * len(names)])
        lines = [line, "  ".join([f"{'Name':>{width}}", *[f"{n:>12}" for n in names]]), line]
        for e in rows:
            cells = (
                f"{100 * e.self_cpu_time_total / total:.2f}%", e.self_cpu_time_total_str, f"{100 * e.cpu_time_total / total:.2f}%",
                e.cpu_time_total_str, e.cpu_time_str, e.count,
            )  # fmt: skip
            lines.append("  ".join([f"{e.key[:width]:>{width}}", *[f"{c:>12}" for c in cells]]))
        lines += [line, f"Self CPU time total: {_shown(self.self_cpu_time_total)}", ""]
        return (header + "\n" if header else "") + "\n".join(lines)

    def export_chrome_trace(self, path):
        """Write the events for a browser's tracing page."""
        events = [
            {
                "name": e.name,
                "ph": "X",
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "pid": os.getpid(),
                "tid": e.thread,
            }
            for e in self
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": events}, file)

    def __str__(self):
        return self.table()
