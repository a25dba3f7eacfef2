"""OpenMP: flambeau has a thread pool of its own instead."""


def is_available():
    """Whether OpenMP is used."""
    return False
