"""How tensors are printed."""

from . import _C

__all__ = ["set_printoptions", "printoptions"]

_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, 2**62, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set digits after the point, from how many elements on a summary is shown, its ends, and the line's length.

    ``profile`` is "default", "short" or "full" and comes before the others. ``sci_mode`` says whether numbers are
    printed as powers of ten; None, also where it is left out, leaves that to what is printed.
    """
    settings = list(_C._print_options()[:4])
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is one of {sorted(_PROFILES)}, got {profile!r}")
        settings = list(_PROFILES[profile])
    for i, value in enumerate((precision, threshold, edgeitems, linewidth)):
        if value is not None:
            settings[i] = min(int(value), 2**62) if value != float("inf") else 2**62
    _C._set_print_options(*settings, sci_mode)


class printoptions:
    """``set_printoptions`` for a block."""

    def __init__(self, **settings):
        self.settings = settings

    def __enter__(self):
        self.before = _C._print_options()
        set_printoptions(**{"sci_mode": self.before[4], **self.settings})

    def __exit__(self, *_):
        _C._set_print_options(*self.before)
