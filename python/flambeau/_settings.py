"""Settings of the whole process: determinism, precision of products, threads between operations, default device."""

from warnings import warn

from . import _C

_state = {"deterministic": False, "warn_only": False, "fill": True, "precision": "highest", "warn_always": False}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for results that are the same each time. They always are: no result depends on threads."""
    _state["deterministic"], _state["warn_only"] = bool(mode), bool(mode) and bool(warn_only)


def are_deterministic_algorithms_enabled():
    """Whether results that are the same each time were asked for."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """Whether an operation that is not deterministic should only warn."""
    return _state["warn_only"]


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error": what an operation that is not deterministic should do."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    """0, 1 or 2: see ``set_deterministic_debug_mode``."""
    return (1 if _state["warn_only"] else 2) if _state["deterministic"] else 0


def set_float32_matmul_precision(precision):
    """ "highest", "high" or "medium": how exact products in single precision must be. On the CPU they always are."""
    if precision in ("highest", "high", "medium"):
        _state["precision"] = precision
    else:
        warn(f"{precision} is not one of 'highest', 'high', and 'medium'; the setting stays as it is", stacklevel=2)


def get_float32_matmul_precision():
    """How exact products in single precision must be."""
    return _state["precision"]


def set_warn_always(b, /):
    """Whether warnings that are given once are given each time."""
    _state["warn_always"] = bool(b)


def is_warn_always_enabled():
    """Whether warnings that are given once are given each time."""
    return _state["warn_always"]


def set_flush_denormal(mode):
    """Whether tiny numbers should become 0; False: flambeau always computes with them."""
    return False


def get_num_interop_threads():
    """How many operations run side by side: one, each on several threads."""
    return 1


def set_num_interop_threads(int):
    """Accepted; operations of a program run one after another."""
    if int < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number of threads, got {int}")


def set_default_tensor_type(t, /):
    """``set_default_dtype`` by the name of a type, or the type: "torch.FloatTensor"."""
    from . import _legacy

    name = t.rsplit(".", 1)[-1] if isinstance(t, str) else getattr(t, "__name__", str(t))
    if (isinstance(t, str) and "cuda" in t) or getattr(t, "device", "cpu") != "cpu":
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    if name not in _legacy.DTYPES:
        raise TypeError(f"invalid type object: {t}: types of tensors are such as torch.FloatTensor")
    dtype = getattr(_C, _legacy.DTYPES[name])
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {t}")
    _C.set_default_dtype(dtype)


def get_default_device():
    """The device of new tensors."""
    return _C.device("cpu")


def set_default_device(device):
    """The device of new tensors: the CPU. ``NotImplementedError`` for others."""
    if device is not None and _C.device(device).type != "cpu":
        raise NotImplementedError(
            f"set_default_device: flambeau makes new tensors on the CPU unless device= says otherwise, got {device}"
        )


def get_device_module(device=None):
    """The module of a type of device: ``torch.cuda`` for "cuda"."""
    from importlib import import_module

    name = _C.device("cpu" if device is None else device).type
    try:
        return import_module("." + name, __package__)
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device_type of type {name}: there is no such module") from None


def compiled_with_cxx11_abi():
    """Whether C++ extensions use the newer ABI; flambeau has no C++."""
    return True


def is_storage(obj, /):
    """Whether ``obj`` is a storage."""
    from .storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))
