"""The module that ``torch.compile`` makes of a module."""

from ..nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module around another, ``_orig_mod``, that behaves as it does."""

    _opt_mod_attributes = frozenset(("_orig_mod", "forward", "training"))

    def __init__(self, mod, dynamo_ctx=None):
        super().__init__()
        self._orig_mod = mod

    def forward(self, *args, **kwargs):
        """What the module gives."""
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        return delattr(self._orig_mod, name)

    @property
    def training(self):
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._orig_mod.training = value
