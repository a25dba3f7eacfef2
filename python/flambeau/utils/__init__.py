"""Utilities: data loading, hooks."""

_LAZY = ("data", "hooks", "_mode_utils")


def __getattr__(name):
    if name in _LAZY:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no 'utils.{name}' yet")
