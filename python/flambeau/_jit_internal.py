"""Names from TorchScript's inside that libraries import."""

from typing import Final, Generic, TypeVar  # noqa: F401

from .jit import export, ignore, interface, is_scripting, unused  # noqa: F401

_T = TypeVar("_T")


class BroadcastingListCls(Generic[_T]):
    """``BroadcastingList2[int]``: a number, or two of them."""

    def __getitem__(self, types):
        return types


BroadcastingList1 = BroadcastingListCls()
for _i in range(2, 7):
    globals()[f"BroadcastingList{_i}"] = BroadcastingList1
del _i


def _copy_to_script_wrapper(fn):
    return fn


_overload = _overload_method = _copy_to_script_wrapper


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls one of two, as one of its arguments says."""

    def fn(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return if_true(*args, **kwargs) if chosen else if_false(*args, **kwargs)

    fn.__name__, fn.__module__, fn.__doc__ = func_name, module_name, if_false.__doc__
    return fn
