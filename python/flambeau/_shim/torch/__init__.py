"""Stands where ``import torch`` looks first in a child process of a program that runs on flambeau."""

import os
import sys

try:
    import flambeau
except ImportError:
    # Another Python without flambeau, started by the program: whatever torch it has is the one it means.
    _here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _here]
    del sys.modules["torch"]
    import torch  # noqa: F401
else:
    flambeau.install_as_torch()
    sys.modules["torch"] = flambeau
