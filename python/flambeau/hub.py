"""Models from the net. flambeau fetches nothing: what is on disk already is loaded, the rest is refused."""

import os

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_places = {}


def get_dir():
    """The folder of what was fetched: ``$TORCH_HOME/hub``."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _places.get("dir") or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    """Choose the folder."""
    _places["dir"] = os.path.expanduser(d)


def _refuse(what, remedy):
    raise RuntimeError(f"torch.hub.{what}: flambeau fetches nothing from the net; {remedy}")


def _entry(repo_or_dir, source, what):
    """The module ``hubconf`` of a folder."""
    if source != "local":
        _refuse(what, "clone the repository and give its folder with source='local'")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("hubconf", os.path.join(repo_or_dir, "hubconf.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo=None,
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """What a function of a folder's ``hubconf.py`` gives; repositories on the net are refused."""
    return getattr(_entry(repo_or_dir, source, "load"), model)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True):
    """The models of a repository: refused."""
    _refuse("list", "clone the repository")


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None):
    """What a repository says of a model: refused."""
    _refuse("help", "clone the repository")


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Fetch a file: refused."""
    _refuse("download_url_to_file", f"fetch {url} to {dst} yourself")


def load_state_dict_from_url(
    url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
):
    """The parameters in a file, where it was fetched before; else refused."""
    from urllib.parse import urlparse

    from .serialization import load as load_file

    path = os.path.join(
        model_dir or os.path.join(get_dir(), "checkpoints"), file_name or os.path.basename(urlparse(url).path)
    )
    if not os.path.exists(path):
        _refuse("load_state_dict_from_url", f"fetch {url} to {path} yourself")
    return load_file(path, map_location=map_location)
