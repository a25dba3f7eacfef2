"""Products of matrices in groups, and of matrices of few bits with their scales."""

from enum import IntEnum

from .. import _C


class ScalingType(IntEnum):
    """What one scale belongs to."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(IntEnum):
    """In which order scales of blocks lie."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1
    SWIZZLE_32_8 = 2


def _pieces(offs, length, name):
    ends = [int(n) for n in offs.tolist()]
    starts = [0, *ends[:-1]]
    if any(not 0 <= a <= b <= length for a, b in zip(starts, ends)):
        raise RuntimeError(f"{name}: offs must rise from 0 to at most {length}, got {ends}")
    return list(zip(starts, ends))


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of matrices, one for each group.

    Of two stacks each with each; of a matrix and a stack, ``offs`` says where the groups of rows (of the first) or of
    columns (of the second) end; of two matrices, where the groups of what is summed over end.
    """
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet; add it to the result")
    return _grouped("grouped_mm", mat_a, mat_b, offs, out_dtype)


def _grouped(name, a, b, offs, out_dtype):
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        raise RuntimeError(f"{name}: mat_a and mat_b must have 2 or 3 dimensions, got shapes {tuple(a.shape)} and {tuple(b.shape)}")
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"{name}: contraction dimension of mat_a and mat_b must match, got {tuple(a.shape)} and {tuple(b.shape)}")
    if (offs is None) != (a.dim() == 3 and b.dim() == 3):
        raise RuntimeError(f"{name}: Have to provide offsets if there is a 2d matrix, and none if both are 3d")
    if a.dim() == 3 and b.dim() == 3:
        out = a @ b
    elif a.dim() == 2 and b.dim() == 3:
        parts = [a[i:j] @ m for (i, j), m in zip(_pieces(offs, a.shape[0], name), b)]
        done = int(offs[-1])
        out = _C.cat([*parts, a.new_zeros((a.shape[0] - done, b.shape[-1]))])
    elif b.dim() == 2 and a.dim() == 3:
        parts = [m @ b[:, i:j] for (i, j), m in zip(_pieces(offs, b.shape[1], name), a)]
        out = _C.cat([*parts, b.new_zeros((a.shape[1], b.shape[1] - int(offs[-1])))], 1)
    else:
        out = _C.stack([a[:, i:j] @ b[i:j] for i, j in _pieces(offs, a.shape[1], name)])
    return out if out_dtype is None else out.to(out_dtype)


def _only(name, what, value):
    value = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    if isinstance(value, (list, tuple)):
        raise NotImplementedError(f"{name}: one {what} for each matrix, got {len(value)}")
    return value


def _unscaled(name, mat, scale, recipe, swizzle, rows):
    """The matrix in float32, times its scale: one number, or one for each row (or column)."""
    scale, recipe, swizzle = _only(name, "scale", scale), _only(name, "recipe", recipe), _only(name, "swizzle", swizzle)
    if swizzle not in (None, SwizzleType.NO_SWIZZLE):
        raise NotImplementedError(f"{name}: scales in the order {swizzle!r} are laid out for GPUs; use SwizzleType.NO_SWIZZLE")
    if recipe == ScalingType.TensorWise:
        return mat.float() * scale.float().reshape(())
    if recipe == ScalingType.RowWise:
        scale = scale.float().reshape(*mat.shape[:-2], -1)
        return mat.float() * scale.unsqueeze(-1 if rows else -2)
    raise NotImplementedError(f"{name}: scales of blocks ({recipe!r}) are not supported; use TensorWise or RowWise")


def scaled_mm(
    mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
    output_dtype=_C.bfloat16, contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    """The product of two matrices, each times its scales, computed in float32."""
    a = _unscaled("scaled_mm", mat_a, scale_a, scale_recipe_a, swizzle_a, True)
    out = a @ _unscaled("scaled_mm", mat_b, scale_b, scale_recipe_b, swizzle_b, False)
    out = out if bias is None else out + bias.float()
    return out if output_dtype is None else out.to(output_dtype)


def scaled_addmm(
    input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, contraction_dim=(),
    use_fast_accum=False, *, beta=1.0, alpha=1.0,
):  # fmt: skip
    """``beta * input + alpha * scaled_mm(mat1, mat2)``, in the dtype of ``input``."""
    product = scaled_mm(mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, output_dtype=_C.float32)
    return (beta * input.float() + alpha * product).to(input.dtype)


def scaled_addmm_(
    input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, contraction_dim=(),
    use_fast_accum=False, *, beta=1.0, alpha=1.0,
):  # fmt: skip
    """``scaled_addmm`` in place."""
    made = scaled_addmm(
        input, mat1, mat2, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, beta=beta, alpha=alpha
    )
    return input.copy_(made)


def scaled_grouped_mm(
    mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None, offs=None,
    output_dtype=_C.bfloat16, contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    """``grouped_mm`` of matrices times their scales, computed in float32."""
    a = _unscaled("scaled_grouped_mm", mat_a, scale_a, scale_recipe_a, swizzle_a, True)
    b = _unscaled("scaled_grouped_mm", mat_b, scale_b, scale_recipe_b, swizzle_b, False)
    out = _grouped("scaled_grouped_mm", a, b, offs, None)
    out = out if bias is None else out + bias.float()
    return out if output_dtype is None else out.to(output_dtype)
