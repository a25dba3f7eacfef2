"""Functions of single devices, from before those that take the device's type."""

from .. import _C


def _make(kind, device, name):
    def enabled():
        return _C.is_autocast_enabled(device)

    def set_enabled(enabled, /):
        _C.set_autocast_enabled(device, enabled)

    def get_dtype():
        return _C.get_autocast_dtype(device)

    def set_dtype(dtype, /):
        _C.set_autocast_dtype(device, dtype)

    made = {"is": enabled, "set": set_enabled, "get_dtype": get_dtype, "set_dtype": set_dtype}[kind]
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"``{name.replace('_' + _WORDS[device], '')}`` for {device!r}."
    return made


_WORDS = {"cpu": "cpu", "cuda": "gpu", "ipu": "ipu", "xla": "xla"}
NAMES = {}
for _device, _word in _WORDS.items():
    if _device != "cuda":
        NAMES[f"is_autocast_{_word}_enabled"] = ("is", _device)
        NAMES[f"set_autocast_{_word}_enabled"] = ("set", _device)
    NAMES[f"get_autocast_{_word}_dtype"] = ("get_dtype", _device)
    NAMES[f"set_autocast_{_word}_dtype"] = ("set_dtype", _device)
for _name, (_kind, _device) in NAMES.items():
    globals()[_name] = _make(_kind, _device, _name)
