"""``Compare``: measurements side by side."""

from .timer import Measurement, select_unit

__all__ = ["Compare"]


class Compare:
    """A table of measurements: a row for each statement (or ``sub_label``), a column for each ``description``."""

    def __init__(self, results):
        self._results = []
        self.extend_results(results)
        self._trim = self._highlight = False

    def extend_results(self, results):
        """Add measurements."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, but got {type(r)} instead")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Accepted; the table has no colours."""

    def highlight_warnings(self):
        """Mark measurements that scatter."""
        self._highlight = True

    def print(self):
        """Print the tables."""
        print(str(self))

    def __str__(self):
        labels = list(dict.fromkeys(r.task_spec.label or "" for r in self._results))
        return "\n".join(self._table(label) for label in labels)

    def _table(self, label):
        results = Measurement.merge([r for r in self._results if (r.task_spec.label or "") == label])
        columns = list(dict.fromkeys(r.task_spec.description or "" for r in results))
        unit, length = select_unit(min(r.median for r in results))
        rows = {}
        for r in results:
            rows.setdefault((r.num_threads, r.as_row_name), {})[r.task_spec.description or ""] = r
        width = max(len(name) for _, name in rows) + 2
        widths = [max(len(c), 10) for c in columns]
        lines = [f"[{label:-^{width + sum(widths) + 3 * len(widths)}}]"]
        lines.append(" " * width + "".join(f" | {c:>{w}}" for c, w in zip(columns, widths)))
        threads = None
        for (n, name), cells in rows.items():
            if n != threads:
                lines.append(f"{n} threads: " + "-" * (width + sum(widths)))
                threads = n
            shown = (self._cell(cells.get(c), length) for c in columns)
            lines.append(f"{name:>{width}}" + "".join(f" | {x:>{w}}" for x, w in zip(shown, widths)))
        names = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}
        return "\n".join([*lines, "", f"Times are in {names[unit]}.", ""])

    def _cell(self, result, length):
        if result is None:
            return ""
        text = (
            f"{result.median / length:.{result.significant_figures}g}"
            if self._trim
            else f"{result.median / length:.1f}"
        )
        return text + ("(!)" if self._highlight and result.has_warnings else "")
