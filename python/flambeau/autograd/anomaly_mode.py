"""Anomaly mode: backward names the line that recorded the operation whose derivative fails, and NaN is an error."""

from os.path import join
from warnings import warn

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_OWN = (join("flambeau", "autograd", "function.py"), join("flambeau", "autograd", "__init__.py"))


class set_detect_anomaly:
    """Anomaly mode on or off for all threads, from the call on; as a context manager until the block ends.

    Nodes recorded meanwhile remember the Python stack. Where a derivative fails, a warning shows it; where a tensor that
    backward needs was changed in place, the error says by what and where. With ``check_nan`` a gradient that is NaN is an
    error. All of this is slow.
    """

    def __init__(self, mode, check_nan=True):
        self.prev = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _C._set_anomaly_enabled(*self.prev)


class detect_anomaly:
    """A block in anomaly mode, see :class:`set_detect_anomaly`."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self.switch = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *_):
        self.switch.__exit__()


def _report(name, metadata):
    """Warns of the failure of a node, and of the nodes during whose derivative it was recorded. Called by the engine."""
    stack = metadata.get("traceback_")
    if stack is None:
        warn(
            f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass "
            "for more information.",
            stacklevel=2,
        )
        return
    warn(f"Error detected in {name}. Traceback of forward call that caused the error:\n{''.join(stack)}", stacklevel=2)
    while (parent := metadata.get("parent_")) is not None:
        metadata = parent.metadata
        stack = metadata.get("traceback_")
        what = f"\n\nPrevious calculation was induced by {parent.name()}. "
        if stack is None:
            warn(what + "No forward pass information available.", stacklevel=2)
        else:
            warn(what + "Traceback of forward call that induced the previous calculation:\n" + "".join(stack), stacklevel=2)


def _stack():
    """The Python stack, without flambeau's own last frames. Called by the engine."""
    from traceback import extract_stack, format_list

    frames = extract_stack()[:-1]
    while len(frames) > 1 and frames[-1].filename.endswith(_OWN):
        frames.pop()
    return format_list(frames)
