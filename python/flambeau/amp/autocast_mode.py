"""Regions in which operations choose the precision that they compute in."""

from functools import wraps
from warnings import warn

from .. import _C

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type):
    """Whether a type of device has autocast; that it is known is enough, it need not be here."""
    return _C._is_autocast_available(device_type)


def autocast_decorator(autocast_instance, func):
    """``func``, each call of which runs within the region."""

    @wraps(func)
    def inside(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return inside


class autocast:
    """A region, or a decorated function, in which matrix products, convolutions and attention compute in ``dtype``,
    losses and what loses digits in single precision, and all else in the precision of what it is given.

    On the CPU ``dtype`` is ``bfloat16``, the default, or ``float16``. For a device that is not here it warns and does
    nothing. What is done to an operation stands in its row of the table of operations.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled and device_type == "cpu" and self.fast_dtype not in (_C.bfloat16, _C.float16):
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before = []

    def __enter__(self):
        device = self.device
        before = (_C.is_autocast_enabled(device), _C.get_autocast_dtype(device), _C.is_autocast_cache_enabled())
        self._before.append(before)
        _C.set_autocast_enabled(device, self._enabled)
        _C.set_autocast_dtype(device, self.fast_dtype)
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *_):
        enabled, dtype, cache = self._before.pop()
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache)
        return False

    def __call__(self, func):
        return autocast_decorator(self, func)


def _cast(value, device_type, dtype):
    """``value`` with the floating point tensors in it in another dtype, whatever containers they are in."""
    from .. import Tensor

    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype != _C.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates ``forward`` of an autograd function: it remembers autocast's state for ``backward``.

    With ``cast_inputs`` its floating point arguments become that dtype within a region, and it runs with autocast off.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return lambda fwd: custom_fwd(fwd, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def inside(*args, **kwargs):
        args[0]._dtype = _C.get_autocast_dtype(device_type)
        if cast_inputs is None:
            args[0]._fwd_used_autocast = _C.is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        active = _C.is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = False
        if not active:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return inside


def custom_bwd(bwd=None, *, device_type):
    """Decorates ``backward`` of an autograd function: it runs under the autocast that ``forward`` ran under."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return lambda bwd: custom_bwd(bwd, device_type=device_type)

    @wraps(bwd)
    def inside(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return inside
