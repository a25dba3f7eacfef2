"""Comparison of results in tests."""

from collections.abc import Mapping, Sequence

from . import _C
from ._tensor import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {  # relative and absolute, by dtype of floats and complex numbers
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def _default_tolerances(*dtypes):
    found = [_TOLERANCES.get(str(dtype).rpartition(".")[2], (0.0, 0.0)) for dtype in dtypes]
    return max(r for r, _ in found), max(a for _, a in found)


def assert_close(
    actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
    check_dtype=True, check_layout=True, check_stride=False, msg=None,
):  # fmt: skip
    """Raise ``AssertionError`` unless ``|actual - expected| <= atol + rtol |expected|`` everywhere.

    Takes tensors, numbers, and sequences and mappings of them. The tolerances default by dtype, and are given both or
    not at all.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    settings = dict(
        rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype,
        check_stride=check_stride,
    )  # fmt: skip
    problem = _compare(actual, expected, "", settings)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else problem if msg is None else msg)


def _compare(actual, expected, place, settings):
    """What is wrong, in words; None where all is well."""
    where = f"\n\nThe failure occurred for item {place}" if place else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match: {sorted(map(str, actual))} and {sorted(map(str, expected))}{where}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        pairs = [(i, a, e) for i, (a, e) in enumerate(zip(actual, expected))]
    elif actual is None and expected is None:
        return None
    else:
        problem = _compare_values(actual, expected, settings)
        return None if problem is None else problem + where
    for key, a, e in pairs:
        problem = _compare(a, e, f"{place}[{key!r}]", settings)
        if problem is not None:
            return problem
    return None


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare_values(actual, expected, settings):
    tensors = isinstance(actual, Tensor), isinstance(expected, Tensor)
    if any(tensors) and not all(tensors):
        return f"{type(actual).__name__} and {type(expected).__name__} cannot be compared: one is a tensor, one is not"
    if not all(tensors):
        actual, expected = _C.tensor(actual), _C.tensor(expected)
        if actual.dtype != expected.dtype:
            actual, expected = actual.to(_C.float64), expected.to(_C.float64)
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    for name, checked in (("dtype", "check_dtype"), ("device", "check_device"), ("stride", "check_stride")):
        mine, theirs = (getattr(x, name) for x in (actual, expected))
        if name == "stride":
            mine, theirs = mine(), theirs()
        if settings[checked] and mine != theirs:
            return f"The values for attribute '{name}' do not match: {mine} != {theirs}."
    rtol, atol = settings["rtol"], settings["atol"]
    if rtol is None:
        rtol, atol = _default_tolerances(actual.dtype, expected.dtype)
    return _mismatch(actual.detach(), expected.detach(), rtol, atol, settings["equal_nan"])


def _mismatch(actual, expected, rtol, atol, equal_nan):
    wide = _C.complex128 if actual.is_complex() or expected.is_complex() else _C.float64
    if not (actual.dtype.is_floating_point or actual.is_complex()) and rtol == atol == 0:
        bad = actual != expected  # integers of 64 bits do not all fit a float
    else:
        bad = ~_C.isclose(actual.to(wide), expected.to(wide), rtol=rtol, atol=atol, equal_nan=equal_nan)
    count = int(bad.sum().item())
    if count == 0:
        return None
    gap = (actual.to(wide) - expected.to(wide)).abs()
    gap = _C.where(bad, gap, _C.zeros_like(gap))
    share = gap / expected.to(wide).abs()
    share = _C.where(bad, share, _C.zeros_like(share))
    if actual.dim() == 0:
        return (
            f"Scalars are not close!\n\nExpected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {gap.item()} (up to {atol} allowed)\n"
            f"Relative difference: {share.item()} (up to {rtol} allowed)"
        )
    return (
        f"Tensor-likes are not close!\n\nMismatched elements: {count} / {actual.numel()} ({count / actual.numel():.1%})\n"
        f"Greatest absolute difference: {gap.max().item()} at index {_place(gap)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {share.max().item()} at index {_place(share)} (up to {rtol} allowed)"
    )


def _place(values):
    """The index of the greatest of ``values``."""
    position, at = int(values.argmax().item()), []
    for size in reversed(values.shape):
        position, index = divmod(position, size)
        at.append(index)
    return tuple(reversed(at))
