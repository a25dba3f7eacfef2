"""Arm's KleidiAI: flambeau has kernels of its own instead."""


def is_available():
    """Whether it is used."""
    return False
