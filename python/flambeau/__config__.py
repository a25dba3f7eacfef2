"""How flambeau was built."""


def show():
    """The build in a few words."""
    from . import _C
    from .version import flambeau_version

    return f"flambeau {flambeau_version}, kernels for {_C._cpu_capability()}, no accelerators\n"


def parallel_info():
    """What runs in parallel."""
    from . import _C

    return f"flambeau's thread pool: {_C.get_num_threads()} threads\n"
