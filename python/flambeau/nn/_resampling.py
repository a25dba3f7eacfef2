"""Interpolation and sampling under PyTorch's signatures: sizes from factors, names of modes."""

from warnings import warn

from .. import _C

_nn = _C._nn

_MODES_OF = {3: "linear", 4: "bilinear", 5: "trilinear"}


def _per_dimension(value, dims, what, input):
    if not isinstance(value, (list, tuple)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {what} of {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            f"format and {what} in (o1, o2, ...,oK) format."
        )
    return list(value)


def _target(input, size, scale_factor, recompute):
    """Sizes and factors, of which one is None."""
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        size = _per_dimension(size, dims, "output size", input)
        if any(isinstance(s, float) for s in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(s) for s in size]}"
            )
        return size, None
    factors = _per_dimension(scale_factor, dims, "scale_factor", input)
    if recompute:
        return [int(n * f) for n, f in zip(input.shape[2:], factors, strict=True)], None
    return None, factors


def _antialiased(input, mode, align_corners, size, factors):
    if mode not in ("bilinear", "bicubic", "lanczos") or input.dim() != 4:
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    return getattr(_nn, f"_upsample_{mode}2d_aa")(input, size, align_corners, factors)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """``input`` (batch, channels, one to three dimensions) with other sizes of its last dimensions.

    The sizes are ``size``, or the input's times ``scale_factor``. ``mode``: 'nearest', 'nearest-exact', 'linear' (3-D),
    'bilinear' and 'bicubic' (4-D), 'trilinear' (5-D), 'area', or 'lanczos' (4-D, with ``antialias``). With
    ``align_corners`` the middles of first and last elements keep their places. With ``recompute_scale_factor`` places
    follow from the sizes alone. With ``antialias`` the filter widens where the tensor shrinks.
    """
    exact = mode in ("nearest", "area", "nearest-exact")
    if exact and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    align_corners = bool(align_corners)
    size, factors = _target(input, size, scale_factor, recompute_scale_factor or (mode == "area" and size is None))
    dims = input.dim() - 2
    if antialias:
        return _antialiased(input, mode, align_corners, size, factors)
    if mode == "lanczos" and dims == 2:
        wrong = "does not support align_corners=True" if align_corners else "requires antialias=True"
        raise ValueError(f"Lanczos mode {wrong}")
    if exact and dims in (1, 2, 3):
        if mode == "area":
            return (getattr(_nn, f"adaptive_avg_pool{dims}d", None) or _C.adaptive_avg_pool1d)(input, size)
        return getattr(_nn, f"{'upsample_nearest' if mode == 'nearest' else '_upsample_nearest_exact'}{dims}d")(
            input, size, factors
        )
    if dims == 2 and mode == "bicubic":
        return _nn.upsample_bicubic2d(input, size, align_corners, factors)
    if _MODES_OF.get(input.dim()) == mode:
        return getattr(_nn, f"upsample_{mode}{dims}d")(input, size, align_corners, factors)
    for needed, name in _MODES_OF.items():
        if name == mode and input.dim() in _MODES_OF:
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear "
        f"| bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Former name of :func:`interpolate`."""
    warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """:func:`interpolate` with ``mode='nearest'``."""
    warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """:func:`interpolate` with ``mode='bilinear'`` and ``align_corners=True``."""
    warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLERS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_OUTSIDE = {"zeros": 0, "border": 1, "reflection": 2}


def _corners(name, align_corners):
    if align_corners is None:
        warn(
            f"Default {name} and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of ``input`` (batch, channels, two or three dimensions) at the places of ``grid``.

    The last dimension of ``grid`` names the last dimension of ``input`` first, from -1 to 1. ``mode``: 'bilinear',
    'nearest' or (4-D) 'bicubic'; ``padding_mode``: 'zeros', 'border' or 'reflection'. With ``align_corners`` -1 and 1
    are the middles of the first and last elements, else their outer edges.
    """
    if mode not in _SAMPLERS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _OUTSIDE:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    align_corners = _corners("grid_sample", align_corners)
    return _C.grid_sampler(input, grid, _SAMPLERS[mode], _OUTSIDE[padding_mode], align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid of :func:`grid_sample` that affine maps ``theta``, (batch, d, d + 1), give for a result of ``size``."""
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rows, columns = {4: (2, 3), 5: (3, 4)}.get(len(size), (0, 0))
    if rows == 0:
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{list(size)}."
        )
    if theta.dim() != 3 or theta.size(-2) != rows or theta.size(-1) != columns:
        raise ValueError(
            f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{columns} for size {list(size)}. Got "
            f"{list(theta.shape)}."
        )
    align_corners = _corners("grid_sample", align_corners)
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    return _C.affine_grid_generator(theta, list(size), align_corners)


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def _bags(input, offsets, per_sample_weights):
    """Indices, offsets and weights as vectors: a matrix of indices has its rows as bags."""
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({tuple(per_sample_weights.shape)}) is not None, then it must have "
            f"the same shape as the input ({tuple(input.shape)})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = _C.arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype, device=input.device)
        if input.size(1) == 0:
            offsets = _C.zeros(input.size(0), dtype=input.dtype, device=input.device)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        return input.reshape(-1), offsets, per_sample_weights
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima (``mode``) of the rows of ``weight`` that ``input`` names, bag by bag.

    Bags are the rows of a matrix, or begin at ``offsets`` in a vector, which with ``include_last_offset`` end with its
    length. Rows are multiplied by ``per_sample_weights`` before they are summed; row ``padding_idx`` counts nowhere.
    With ``max_norm`` the rows looked up are first rescaled in place. Gradients are dense, also with ``sparse``.
    """
    if weight.dtype == _C.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    input, offsets, per_sample_weights = _bags(input, offsets, per_sample_weights)
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        what = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
        raise ValueError(f"max mode does not support {what}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    if padding_idx is not None and padding_idx < 0:
        if padding_idx < -weight.size(0):
            raise AssertionError("padding_idx must be within the number of embeddings")
        padding_idx += weight.size(0)
    if max_norm is not None:
        from .functional import _renorm_rows

        _renorm_rows(weight, input, max_norm, norm_type)
    return _C.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse, per_sample_weights, include_last_offset,
        padding_idx,
    )[0]  # fmt: skip
