"""Handles by which a registered hook is taken away again."""

from itertools import count
from weakref import ref

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """Names one entry of a dictionary of hooks; ``remove()`` or leaving a ``with`` block takes it out.

    The dictionary is held weakly, so a handle keeps no module or tensor alive. ``extra_dict`` lists further
    dictionaries in which the same id marks how the hook is called.
    """

    _ids = count()

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(RemovableHandle._ids)
        self.hooks_dict_ref = ref(hooks_dict)
        extras = () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(ref(extra) for extra in extras)

    def remove(self):
        """Take the hook out; a second call does nothing."""
        for held in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = held()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(held() for held in self.extra_dict_ref))

    def __setstate__(self, state):
        from collections import OrderedDict

        hooks, self.id, extras = state
        self.hooks_dict_ref = ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(ref(OrderedDict() if extra is None else extra) for extra in extras)
