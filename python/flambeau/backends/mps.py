"""Apple's GPUs: not supported yet."""


def is_available():
    """Whether the device can be used."""
    return False


def is_built():
    """Whether flambeau was built with it."""
    return False
