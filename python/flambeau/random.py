"""The default generator's seed and state."""

from . import _C

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed):
    """Start the default generator from ``seed``, an integer of up to 64 bits, negative ones included; returns it."""
    return _C.default_generator.manual_seed(int(seed))


def seed():
    """Start the default generator from a seed that the system draws; returns that seed."""
    return _C.default_generator.seed()


def initial_seed():
    """The seed from which the default generator was started."""
    return _C.default_generator.initial_seed()


def get_rng_state():
    """The default generator's state: a tensor of 5,056 bytes, in PyTorch's layout."""
    return _C.default_generator.get_state()


def set_rng_state(new_state):
    """Put the default generator into a state that ``get_rng_state`` gave."""
    _C.default_generator.set_state(new_state)


class fork_rng:
    """A block after which the default generator goes on as if the block had drawn nothing; also a decorator."""

    def __init__(self, devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
        self.enabled = enabled

    def __enter__(self):
        self.state = get_rng_state() if self.enabled else None

    def __exit__(self, *_):
        if self.enabled:
            set_rng_state(self.state)

    def __call__(self, function):
        from functools import wraps

        @wraps(function)
        def inside(*args, **kwargs):
            with fork_rng(enabled=self.enabled):
                return function(*args, **kwargs)

        return inside


def thread_safe_generator():
    """The generator of a loader's thread; None elsewhere, for the default one. Loaders have no threads."""
