"""Versions: of the PyTorch whose interface flambeau offers, and flambeau's own."""

__version__ = "2.15.0"
flambeau_version = "0.1.0"
cuda = None
hip = None
git_version = "unknown"
debug = False
