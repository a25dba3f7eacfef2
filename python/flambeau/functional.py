"""Functions that take any number of tensors, or options that the native operations do not have."""

from . import _C

__all__ = ["block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "einsum", "meshgrid", "norm"]


def _listed(tensors):
    """Tensors given one by one, or as one list."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def broadcast_tensors(*tensors):
    """``tensors`` as views of one shape, that to which all of them broadcast."""
    return _C.broadcast_tensors(list(_listed(tensors)))


def block_diag(*tensors):
    """``tensors`` along the diagonal of a larger matrix, zeros elsewhere; vectors count as rows."""
    return _C.block_diag(list(_listed(tensors)))


def cartesian_prod(*tensors):
    """Every choice of one element from each vector, as rows."""
    return _C.cartesian_prod(list(_listed(tensors)))


def broadcast_shapes(*shapes):
    """The shape to which all of ``shapes`` broadcast."""
    out = []
    for shape in shapes:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        out = [1] * (len(shape) - len(out)) + out
        for i in range(-len(shape), 0):
            if shape[i] < 0:
                raise RuntimeError(f"broadcast_shapes: a size cannot be negative, got {shape}")
            if shape[i] != 1 and out[i] not in (1, shape[i]):
                raise RuntimeError(
                    f"broadcast_shapes: Shape mismatch: sizes {out[i]} and {shape[i]} of dimension {i} do not broadcast, "
                    f"in {', '.join(map(str, shapes))}"
                )
            if shape[i] != 1:
                out[i] = shape[i]
    return _C.Size(out)


def einsum(equation, *operands):
    """Sums of products by Einstein's convention: ``einsum("ij,jk->ik", a, b)`` is the product of matrices.

    Operands may alternate with lists of numbers that stand for letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
    """
    if not isinstance(equation, str):
        equation, operands = _equation_of_sublists((equation, *operands))
    return _C.einsum(equation, list(_listed(operands)))


def _equation_of_sublists(arguments):
    def letters(sublist):
        return "".join("..." if n is Ellipsis else _letter(n) for n in sublist)

    pairs = len(arguments) // 2
    terms = ",".join(letters(arguments[2 * i + 1]) for i in range(pairs))
    if len(arguments) % 2:
        terms += "->" + letters(arguments[-1])
    return terms, tuple(arguments[2 * i] for i in range(pairs))


def _letter(n):
    if not 0 <= n < 52:
        raise ValueError(f"einsum: subscripts in lists are numbers from 0 to 51, got {n}")
    return chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26)


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates: one tensor for each of ``tensors``, which have one dimension or none.

    ``indexing`` "ij" lets the first vary along the first dimension; "xy" swaps the first two.
    """
    return _C.meshgrid(list(_listed(tensors)), indexing="ij" if indexing is None else indexing)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements, or along ``dim``; "fro" is the 2-norm."""
    if isinstance(p, str):
        if p != "fro":
            raise NotImplementedError(f"norm with p={p!r} is not supported by flambeau yet: 'fro' and numbers are")
        p = 2.0
    result = _C.linalg_vector_norm(input, 2.0 if p is None else p, dim, keepdim, dtype=dtype)
    return result if out is None else out.resize_(result.shape).copy_(result)
