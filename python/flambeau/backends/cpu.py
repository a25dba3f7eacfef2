"""The CPU."""


def get_cpu_capability():
    """The instruction set for which kernels were chosen."""
    from .. import _C

    return _C._cpu_capability()
