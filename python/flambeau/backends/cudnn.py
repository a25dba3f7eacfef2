"""cuDNN's switches, accepted so that programs set them without asking whether there is a device."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10


def is_available():
    """Whether cuDNN can be used."""
    return False


def version():
    """Its version; None without it."""
    return None
