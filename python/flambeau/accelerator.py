"""The accelerator of this machine; there is none."""


def is_available():
    """Whether there is an accelerator."""
    return False


def device_count():
    """How many accelerators there are."""
    return 0


def current_accelerator(check_available=False):
    """The accelerator's device, or None."""
    return None
