"""NVIDIA's cuSPARSELt: there are no CUDA devices."""


def is_available():
    """Whether it can be used."""
    return False


def version():
    """Its version; None without it."""
    return None


def get_max_alg_id():
    """How many ways of working it has; None without it."""
    return None
