"""oneDNN: flambeau has kernels of its own instead."""

enabled = False


def is_available():
    """Whether oneDNN is used."""
    return False
