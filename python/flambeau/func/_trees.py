"""Tensors in nested arguments and results."""

from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten


def map_tensors(function, tree):
    """The tree with ``function`` of each tensor in it."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(x) if isinstance(x, Tensor) else x for x in leaves], spec)


def tensors_of(tree, what):
    """The tensors of a tree, all of whose leaves must be tensors, and its structure."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what}, got an element of type {type(leaf).__name__}")
    return leaves, spec


def chosen(args, argnums, name):
    """The arguments that ``argnums`` names, and whether they are several."""
    several = isinstance(argnums, tuple)
    if not several and not isinstance(argnums, int):
        raise RuntimeError(f"{name}: argnums must be an int or a Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if several else (argnums,)
    if several and not numbers:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    wrapped = []
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"{name}: argnums must be ints, got: {n!r}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        wrapped.append(n % len(args))
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}")
    picked = tuple(args[n] for n in wrapped)
    return wrapped, picked if several else picked[0], several


def replaced(args, numbers, values, several):
    """The arguments with those of ``numbers`` exchanged for ``values``."""
    args = list(args)
    for n, value in zip(numbers, values if several else (values,)):
        args[n] = value
    return tuple(args)
