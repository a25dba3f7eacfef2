"""``python -m flambeau script.py args``: run a PyTorch program on flambeau. ``-m module`` and ``-c code`` too."""

import os
import sys
from types import ModuleType

_USAGE = """usage: python -m flambeau script.py [arguments]
       python -m flambeau -m module [arguments]
       python -m flambeau -c code [arguments]
       python -m flambeau --version

Runs a program written for PyTorch: in it, and in the processes it starts, `import torch` gives flambeau.
"""


def _versions():
    """The package's own version, and the PyTorch version that it follows."""
    from importlib.metadata import PackageNotFoundError, version

    from . import __version__

    try:
        own = version("flambeau")
    except PackageNotFoundError:
        own = "(not installed: run from its source)"
    return f"flambeau {own}, following PyTorch {__version__}"


def _run_code(source, path):
    """Run ``source`` as the main module, so that what it defines can be pickled and found by child processes."""
    main = ModuleType("__main__")
    main.__builtins__ = __builtins__
    if path is not None:
        main.__file__ = path
    sys.modules["__main__"] = main
    code = compile(source, path or "<string>", "exec", dont_inherit=True)
    exec(code, main.__dict__)


def main(argv):
    """Run what the command line names; the exit status where it names nothing that can be run."""
    from . import install_as_torch

    if not argv or argv[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        print(_versions())
        return 0
    if argv[0].startswith("-") and argv[0] not in ("-m", "-c"):
        print(f"python -m flambeau: unknown option {argv[0]}\n{_USAGE}", file=sys.stderr, end="")
        return 2
    if argv[0] in ("-m", "-c") and len(argv) < 2:
        print(f"python -m flambeau: {argv[0]} needs an argument\n{_USAGE}", file=sys.stderr, end="")
        return 2
    install_as_torch()
    if argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        _run_code(argv[1], None)
    elif argv[0] == "-m":
        from runpy import run_module

        sys.argv = argv[1:]
        run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        path = argv[0]
        if os.path.isdir(path) or path.endswith(".pyz"):
            from runpy import run_path

            sys.argv = argv
            run_path(path, run_name="__main__")
            return 0
        try:
            with open(path, "rb") as file:
                source = file.read()
        except OSError as error:
            print(f"python -m flambeau: can't open file '{path}': {error.strerror}", file=sys.stderr)
            return 2
        sys.argv = argv
        # `python -m` put the working directory first; a script expects its own folder there.
        sys.path[0] = os.path.dirname(os.path.abspath(path))
        _run_code(source, path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
