"""Whether attention modules may take a shorter way in evaluation: a switch without effect."""

_state = {"enabled": True}


def get_fastpath_enabled():
    """What was set."""
    return _state["enabled"]


def set_fastpath_enabled(value):
    """Set it."""
    _state["enabled"] = value
