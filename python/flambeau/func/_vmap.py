"""Vectorisation: a function of one example, carried out on a batch of them."""

import warnings
from functools import wraps

from .. import _C, cat
from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """``func`` of one example, as a function of a batch of them.

    Args:
        in_dims: along which dimension the examples of each argument lie; None for an argument that is the same for all.
            An int for all arguments, or nested as they are (or as far as they are).
        out_dims: along which dimension those of each result shall lie.
        randomness: what random operations do inside: ``"error"`` refuses them, ``"same"`` gives all examples the same
            draws, ``"different"`` each its own.
        chunk_size: how many examples are taken at a time; None for all.

    >>> import flambeau as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def wrapped(*args, **kwargs):
        leaves, dims, spec, size = _batch_of(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        return _in_chunks(func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size)

    return wrapped


def _name(func):
    return getattr(func, "__name__", repr(func))


def _spread(dims, tree, path):
    """The dims of a tree's leaves, of a prefix of which ``dims`` gives them; None where the structures do not fit."""
    leaves, spec = tree_flatten(tree)
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves)
    if isinstance(tree, dict) and isinstance(dims, dict) and list(tree) == list(dims):
        pairs = [(dims[key], tree[key]) for key in tree]
    elif isinstance(tree, (list, tuple)) and isinstance(dims, (list, tuple)) and len(tree) == len(dims):
        pairs = list(zip(dims, tree))
    else:
        return None
    found = []
    for d, t in pairs:
        part = _spread(d, t, path)
        if part is None:
            return None
        found.extend(part)
    return found


def _batch_of(func, in_dims, args):
    """The arguments' leaves, the dimension of each, how they are nested, and how many examples there are."""
    name = _name(func)
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, list, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _spread(in_dims, args, call)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {in_dims} but inputs "
            f"has structure {spec}."
        )
    sizes = []
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so "
                f"expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        sizes.append(leaf.shape[dim])
    if not sizes:
        raise ValueError(f"{call}: got no tensors to vmap over: at least one input must have an in_dim that is not None")
    if len(set(sizes)) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    if sizes[0] == 0:
        raise ValueError(f"{call}: the mapped dimension has size 0: there are no examples")
    return leaves, dims, spec, sizes[0]


def _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs):
    level = _C._Level(size, randomness)
    try:
        inside = [x if d is None else level.example(x, d) for x, d in zip(leaves, dims)]
        outputs, out_spec = tree_flatten(func(*tree_unflatten(inside, spec), **kwargs))
        wanted = _out_dims(func, out_dims, outputs, out_spec)
        results = [y if d is None else level.batch(y, d) for y, d in zip(outputs, wanted)]
    finally:
        level.exit()
        for op in _C._take_loop_warnings():
            warnings.warn(
                f"There is a performance drop because we have not yet implemented the batching rule for {op}: it is "
                "carried out example by example.",
                stacklevel=3,
            )
    return tree_unflatten(results, out_spec)


def _out_dims(func, out_dims, outputs, spec):
    name = _name(func)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= "
                "to None for output?"
            )
    if out_dims is None or isinstance(out_dims, int):
        dims = [out_dims] * len(outputs)
    else:
        tree = tree_unflatten(list(outputs), spec)
        if isinstance(tree, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
            tree = (tree,)
        dims = _spread(out_dims, tree, name)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {out_dims} but outputs has structure {spec}."
        )
    return dims


def _in_chunks(func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size):
    parts, out_spec = [], None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        chunk = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims)]
        made, out_spec = tree_flatten(_run(func, chunk, dims, spec, length, out_dims, randomness, kwargs))
        parts.append(made)
    tree = tree_unflatten(parts[0], out_spec)
    wanted = [out_dims] * len(parts[0]) if out_dims is None or isinstance(out_dims, int) else _spread(out_dims, tree, "")
    results = [made[0] if d is None else cat(made, d) for made, d in zip(zip(*parts), wanted)]
    return tree_unflatten(results, out_spec)
