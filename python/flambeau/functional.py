"""Functions that take any number of tensors, or options that the native operations do not have."""

from . import _C

__all__ = [
    "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "chain_matmul", "combinations", "einsum",
    "gradient", "histogramdd", "meshgrid", "norm", "tensordot", "unravel_index",
]  # fmt: skip


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
        if p == "nuc":
            dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
            result = _C.linalg_matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
            return result if out is None else out.resize_(result.shape).copy_(result)
        if p != "fro":
            raise RuntimeError(f"norm: p must be 'fro', 'nuc' or a number, got {p!r}")
        p = 2.0
    result = _C.linalg_vector_norm(input, 2.0 if p is None else p, dim, keepdim, dtype=dtype)
    return result if out is None else out.resize_(result.shape).copy_(result)


def tensordot(a, b, dims=2, out=None):
    """The sum of products over pairs of dimensions, which both tensors lose.

    ``dims`` is how many (the last of ``a`` with the first of ``b``), two lists of dimensions, or these in a tensor.
    """
    if isinstance(dims, _C.TensorBase):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims} for shapes {a.shape} and {b.shape}"
            )
        dims = list(range(-dims, 0)), list(range(dims))
    dims_a, dims_b = ([int(d) for d in (x if hasattr(x, "__len__") else [x])] for x in dims)
    if out is None:
        return _C.tensordot(a, b, dims_a, dims_b)
    return _C.tensordot(a, b, dims_a, dims_b, out=out)


def chain_matmul(*matrices, out=None):
    """The product of matrices in the order that takes the fewest multiplications; see ``linalg.multi_dot``."""
    matrices = _listed(matrices)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, m in enumerate(matrices):
        if m.dim() != 2:
            raise RuntimeError(f"chain_matmul: Tensor dimension is {m.dim()}, expected 2 instead (matrix {i})")
    if len(matrices) == 1:
        return matrices[0] if out is None else out.resize_(matrices[0].shape).copy_(matrices[0])
    return _C.linalg_multi_dot(list(matrices), **({} if out is None else {"out": out}))


def unravel_index(indices, shape):
    """The coordinates, one tensor for each dimension of ``shape``, of numbers in row-major order."""
    if not isinstance(indices, _C.TensorBase):
        raise TypeError(f"unravel_index: indices must be a tensor, got {type(indices).__name__}")
    if indices.is_complex() or indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, (list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    if any(not isinstance(n, int) for n in shape):
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {tuple(shape)}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    if 0 in shape and indices.numel():
        raise ValueError(f"'shape' cannot have zero dimensions when 'indices' is non-empty, but got {tuple(shape)}")
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    steps = _C.tensor(steps[::-1][: len(shape)], dtype=_C.int64)
    coordinates = indices.unsqueeze(-1).floor_divide(steps).remainder(_C.tensor(shape, dtype=_C.int64))
    return coordinates.unbind(-1)


def combinations(input, r=2, with_replacement=False):
    """Every choice of ``r`` elements of a vector, as rows, in the order of their places."""
    if input.dim() != 1:
        raise RuntimeError(f"combinations: Expect a 1D vector, but got shape {tuple(input.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: Expect a non-negative number, but got {r}")
    from itertools import combinations as without
    from itertools import combinations_with_replacement as with_

    if r == 0:
        return input.new_empty((0,))
    rows = list((with_ if with_replacement else without)(range(input.numel()), r))
    return input[_C.tensor(rows, dtype=_C.int64).reshape(len(rows), r)]


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Derivatives of sampled values by central differences, one tensor for each dimension of ``dim``.

    ``spacing`` is the distance between samples, one for each dimension, or their coordinates as tensors.
    """
    if input.dtype in (_C.uint8, _C.bool):
        raise RuntimeError(f"torch.gradient does not support {input.dtype} input.")
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if any(not -input.dim() <= d < input.dim() for d in dims):
        raise IndexError(f"torch.gradient: Dimension out of range, got dim={dim} for shape {tuple(input.shape)}")
    if len({d % max(input.dim(), 1) for d in dims}) != len(dims):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    spacing = 1 if spacing is None else spacing
    if not isinstance(spacing, (list, tuple)):
        spacing = [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length {len(dims)}, got length {len(spacing)}"
        )
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1={edge_order + 1}, got shape {tuple(input.shape)}"
            )
    return [_gradient_along(input, s, d, edge_order) for s, d in zip(spacing, dims)]


def _gradient_along(x, spacing, dim, order):
    n = x.shape[dim]
    at = lambda i, length=1: x.narrow(dim, i, length)  # noqa: E731
    if isinstance(spacing, _C.TensorBase) and spacing.dim() > 0:
        if spacing.dim() != 1 or spacing.numel() != n:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have one dimension of size {n}, got shape {tuple(spacing.shape)}"
            )
        shape = [1] * x.dim()
        shape[dim] = -1
        h = spacing.diff().reshape(shape)
        a, b = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
        first, last = h.narrow(dim, 0, 1), h.narrow(dim, n - 2, 1)
        left = -b / (a * (a + b))
        middle = (b - a) / (a * b)
        right = a / (b * (a + b))
        centre = left * at(0, n - 2) + middle * at(1, n - 2) + right * at(2, n - 2)
        if order == 1:
            front, back = (at(1) - at(0)) / first, (at(n - 1) - at(n - 2)) / last
        else:
            a0, b0 = a.narrow(dim, 0, 1), b.narrow(dim, 0, 1)
            front = -(2 * a0 + b0) / (a0 * (a0 + b0)) * at(0) + (a0 + b0) / (a0 * b0) * at(1) - a0 / (b0 * (a0 + b0)) * at(2)
            a1, b1 = a.narrow(dim, n - 3, 1), b.narrow(dim, n - 3, 1)
            back = b1 / (a1 * (a1 + b1)) * at(n - 3) - (a1 + b1) / (a1 * b1) * at(n - 2) + (2 * b1 + a1) / (b1 * (a1 + b1)) * at(n - 1)
    else:
        centre = (at(2, n - 2) - at(0, n - 2)) / 2 / spacing
        if order == 1:
            front, back = (at(1) - at(0)) / spacing, (at(n - 1) - at(n - 2)) / spacing
        else:
            front = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / spacing
            back = (1.5 * at(n - 1) - 2 * at(n - 2) + 0.5 * at(n - 3)) / spacing
    return _C.cat([front, centre, back], dim)


def histogramdd(input, bins, range=None, weight=None, density=False):
    """A histogram of points, the rows of ``input``: counts (or sums of weights) and the edges of the bins.

    ``bins`` is how many there are along each dimension, one number for all, or tensors of edges.
    """
    if isinstance(bins, int):
        bins = [bins] * (input.shape[-1] if input.dim() else 1)
    bins = list(bins)
    range = None if range is None else [float(x) for x in range]
    counts, *edges = _C._histogramdd(input, bins, range, weight, density)
    return _made_result("histogramdd", ("hist", "bin_edges"), (counts, tuple(edges)))


def _made_result(name, fields, items):
    from .return_types import _make

    return _make(name, fields)(items)
