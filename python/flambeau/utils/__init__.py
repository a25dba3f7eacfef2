"""Utilities: data loading, hooks, checkpointing, timing, logs for TensorBoard."""

_LAZY = (
    "benchmark", "checkpoint", "collect_env", "cpp_extension", "data", "deterministic", "dlpack", "graph", "hooks",
    "model_zoo", "tensorboard", "_mode_utils", "_pytree",
)  # fmt: skip


def set_module(obj, mod):
    """Set the module that a function is shown to belong to."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name):
    if name in _LAZY:
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"flambeau has no 'utils.{name}' yet")


def __dir__():
    return sorted({*globals(), *_LAZY})
