"""What a report of a fault should say of the machine: ``python -m flambeau.utils.collect_env``."""

import os
import platform
import sys

__all__ = ["get_env_info", "get_pretty_env_info", "main"]


def get_env_info():
    """Versions and the processor, by name."""
    from .. import _C, version

    return {
        "flambeau version": version.flambeau_version,
        "PyTorch interface": version.__version__,
        "Python version": f"{sys.version.split()[0]} ({platform.python_implementation()})",
        "OS": platform.platform(),
        "Processor": platform.machine(),
        "Cores": os.cpu_count(),
        "Kernels for": _C._cpu_capability(),
        "Threads": _C.get_num_threads(),
        "Accelerators": "none",
    }


def get_pretty_env_info():
    """The same as text."""
    return "\n".join(f"{name}: {value}" for name, value in get_env_info().items())


def main():
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
