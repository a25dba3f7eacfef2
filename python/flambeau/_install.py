"""``import torch`` that gives flambeau, in this process and in the processes that it starts.

A finder at the head of ``sys.meta_path`` answers for ``torch`` and ``torch.x`` with the very module objects of
``flambeau`` and ``flambeau.x``, so that no class exists twice. The folder ``_shim`` does the same for child
processes: it is put on ``PYTHONPATH`` and holds a package ``torch`` whose import installs the finder, and the metadata
by which ``importlib.metadata`` knows a version of torch.
"""

import os
import sys
from importlib.machinery import ModuleSpec

_SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_shim")


class _Alias:
    """Loader that hands over a module which is loaded already, and leaves its own spec in place."""

    def __init__(self, module):
        self.module = module

    def create_module(self, spec):
        self.own = (self.module.__spec__, getattr(self.module, "__loader__", None))
        return self.module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self.own

    def get_code(self, name):  # `python -m torch.x` runs the file of flambeau.x
        loader = self.module.__spec__.loader
        return loader.get_code(self.module.__spec__.name)


class _TorchFinder:
    """Finds ``torch`` and everything below it in flambeau."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        from importlib import import_module

        twin = "flambeau" + name[len("torch") :]
        try:
            module = import_module(twin)
        except ModuleNotFoundError as error:
            if error.name != twin:
                raise
            raise ModuleNotFoundError(f"flambeau has no '{name[len('torch.') :]}' yet", name=name) from None
        spec = ModuleSpec(
            name, _Alias(module), origin=getattr(module, "__file__", None), is_package=hasattr(module, "__path__")
        )
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.extend(module.__path__)
        return spec


def install_as_torch():
    """From now on ``import torch`` gives flambeau: the same module objects under both names.

    Child processes, spawned or started as programs, see it too. PyTorch itself must not have been imported before.
    """
    package = sys.modules[__package__]
    present = sys.modules.get("torch")
    if present is package:
        return
    if present is not None and getattr(present, "__file__", "").startswith(_SHIM) is False:
        raise RuntimeError(
            f"install_as_torch: PyTorch itself is imported already, from {getattr(present, '__file__', '?')}; call "
            "install_as_torch() before anything imports torch"
        )
    sys.meta_path.insert(0, _TorchFinder)
    for name, module in list(sys.modules.items()):
        if name == __package__ or name.startswith(__package__ + "."):
            sys.modules["torch" + name[len(__package__) :]] = module
    # Before site-packages, where PyTorch may be installed as well: metadata is taken from the first place that has it.
    # After the program's own folder, which it may look for in the first place.
    if _SHIM not in sys.path:
        sys.path.insert(1, _SHIM)
    known = os.environ.get("PYTHONPATH", "")
    if _SHIM not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = _SHIM + (os.pathsep + known if known else "")
