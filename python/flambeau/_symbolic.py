"""Numbers that could be symbols while a program is traced; here they are numbers."""

import math

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min",
    "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class SymInt:
    """An integer that a trace does not know: there are none, sizes are ``int``."""

    def __init__(self, node):
        self.node = node


class SymFloat(SymInt):
    """A float that a trace does not know: there are none."""


class SymBool(SymInt):
    """A truth value that a trace does not know: there are none."""


def sym_int(a):
    """``a`` as an integer, towards zero."""
    return math.trunc(a)


def sym_float(a):
    """``a`` as a float."""
    return float(a)


def sym_not(a):
    """``not a``."""
    return not a


def _pair(choose):
    def of_two(a, b):
        return float(choose(a, b)) if isinstance(a, float) or isinstance(b, float) else choose(a, b)

    of_two.__name__ = of_two.__qualname__ = f"sym_{choose.__name__}"
    of_two.__doc__ = f"The {choose.__name__}imum, a float where one of them is."
    return of_two


sym_max, sym_min = _pair(max), _pair(min)


def sym_sum(args):
    """The sum of some numbers."""
    return sum(args)


def sym_ite(b, t, f):
    """``t if b else f``."""
    return t if b else f


def sym_sqrt(a):
    """The square root."""
    return math.sqrt(a)


def sym_fresh_size(expr):
    """A size that a trace would not know."""
    return expr
