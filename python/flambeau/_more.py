"""Functions of ``torch`` that are seldom called, in terms of others."""

from . import _C

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "as_strided_", "bilinear", "cond", "cudnn_is_acceptable",
    "dequantize", "detach_",
    "embedding_renorm_", "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "frobenius_norm", "from_file",
    "get_device", "init_num_threads", "is_distributed", "is_inference", "is_nonzero", "is_same_size", "is_signed",
    "is_vulkan_available", "norm_except_dim", "result_type", "slice_inverse", "sym_constrain_range",
    "sym_constrain_range_for_size", "vander", "_scaled_mm",
]  # fmt: skip


def _tensor(function, name, value):
    if not isinstance(value, _C.TensorBase):
        raise TypeError(f"{function}(): argument '{name}' must be Tensor, not {type(value).__name__}")
    return value


# ---- methods as functions


def as_strided_(input, size, stride, storage_offset=None):
    """``Tensor.as_strided_``: other sizes, strides and offset for a tensor, in place."""
    return _tensor("as_strided_", "input", input).as_strided_(size, stride, storage_offset)


def detach_(input):
    """``Tensor.detach_``: forget the history of a tensor."""
    return _tensor("detach_", "input", input).detach_()


def get_device(input):
    """The number of a tensor's device, -1 for the CPU."""
    return _tensor("get_device", "input", input).get_device()


def is_inference(input):
    """Whether a tensor was made in inference mode."""
    return _tensor("is_inference", "input", input).is_inference()


def is_signed(input):
    """Whether a tensor's dtype holds negative numbers."""
    return _tensor("is_signed", "input", input).is_signed()


def is_distributed(input):
    """Whether a tensor is one part of a larger one: no."""
    _tensor("is_distributed", "input", input)
    return False


def is_nonzero(input):
    """Whether the one element of a tensor differs from zero."""
    return bool(_tensor("is_nonzero", "input", input))


def is_same_size(input, other):
    """Whether two tensors have the same shape."""
    return _tensor("is_same_size", "input", input).shape == _tensor("is_same_size", "other", other).shape


def dequantize(input):
    """Tensors as they are: none is quantized, so all of them hold their values."""
    return [t.float() for t in input] if isinstance(input, (list, tuple)) else _tensor("dequantize", "tensor", input).float()


# ---- questions


def result_type(tensor1, tensor2):
    """The dtype of what two tensors or numbers make together: dimensions count before numbers, kinds before sizes."""

    def stand_in(x):
        if isinstance(x, _C.TensorBase):
            return _C.empty((1,) if x.dim() else (), dtype=x.dtype, device="meta")
        if isinstance(x, (bool, int, float, complex)):
            return x
        raise TypeError(f"result_type() takes tensors and numbers, got {type(x).__name__}")

    a, b = stand_in(tensor1), stand_in(tensor2)
    if isinstance(a, _C.TensorBase):
        return _C.add(a, b).dtype
    if isinstance(b, _C.TensorBase):
        return _C.add(b, a).dtype
    return _C.promote_types(_C.tensor(a).dtype, _C.tensor(b).dtype)


def cudnn_is_acceptable(tensor):
    """False: that library is not used."""
    _tensor("cudnn_is_acceptable", "tensor", tensor)
    return False


def is_vulkan_available():
    """False: there are no such devices."""
    return False


def init_num_threads():
    """Start the threads: they start when they are needed."""


def sym_constrain_range(size, *, min=None, max=None):
    """Refuse a number outside a range, for a trace that does not know it."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


sym_constrain_range_for_size = sym_constrain_range


class DisableTorchFunction:
    """A block in which no subclass of tensors is asked for ``__torch_function__``."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class DisableTorchFunctionSubclass(DisableTorchFunction):
    """A block in which no subclass of tensors is asked for ``__torch_function__``; modes are."""


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` if ``pred`` else ``false_fn(*operands)``; ``pred`` is a truth value or a tensor of one element."""
    if not isinstance(pred, (bool, int, float)) and not (isinstance(pred, _C.TensorBase) and pred.numel() == 1):
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple, but got {operands}.")
    return (true_fn if bool(pred) else false_fn)(*operands)


# ---- values


def bilinear(input1, input2, weight, bias=None):
    """``nn.functional.bilinear``."""
    from .nn.functional import bilinear

    return bilinear(input1, input2, weight, bias)


def _scaled_mm(input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    """The product of two matrices of few bits times their scales; see ``nn.functional.scaled_mm``."""
    from .nn.functional import ScalingType, scaled_mm

    whole = [ScalingType.TensorWise if s.numel() == 1 else ScalingType.RowWise for s in (scale_a, scale_b)]
    out = scaled_mm(input, mat2, scale_a, whole[0], scale_b, whole[1], bias=bias, output_dtype=_C.float32)
    out = out if scale_result is None else out * scale_result
    return out.to(out_dtype or input.dtype)


def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The root of the sum of squares over one dimension or two, or over all of them for an empty ``dim``."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"frobenius_norm: Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return _C.linalg_vector_norm(input, 2.0, dims or None, keepdim, **({} if out is None else {"out": out}))


def norm_except_dim(v, pow=2, dim=0):
    """The p-norm over all dimensions but one, which keeps its place; over all of them for ``dim=-1``."""
    if dim == -1:
        return _C.linalg_vector_norm(v, pow)
    return _C.linalg_vector_norm(v, pow, [d for d in range(v.dim()) if d != dim % v.dim()], True)


def vander(x, N=None, increasing=False):
    """Powers of the elements of a vector, as columns from the highest to the lowest, or the other way."""
    if _tensor("vander", "x", x).dim() != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got shape {tuple(x.shape)}.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {n}.")
    x = x if x.is_floating_point() or x.is_complex() else x.long()
    columns = [_C.ones_like(x)] if n else []
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    if not n:
        return x.new_empty((x.shape[0], 0))
    return _C.stack(columns if increasing else columns[::-1], 1)


def embedding_renorm_(input, indices, max_norm, norm_type):
    """Scale the rows of a matrix that ``indices`` names to a norm of at most ``max_norm``, in place."""
    from .nn.functional import _renorm_rows

    _renorm_rows(input, indices, max_norm, norm_type)
    return input


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False):
    """A vector of ``size`` elements over the bytes of a file; what is written to it goes to the file if ``shared``."""
    import mmap

    dtype = dtype or _C.get_default_dtype()
    length = size * dtype.itemsize
    if shared:
        with open(filename, "ab"):
            pass
    with open(filename, "r+b" if shared else "rb") as file:
        file.seek(0, 2)
        if file.tell() < length:
            if not shared:
                raise RuntimeError(f"from_file: file {filename} has {file.tell()} bytes, fewer than {size} elements of {dtype} take")
            file.truncate(length)
        if not length:
            return _C.empty((0,), dtype=dtype)
        memory = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return _frombuffer(memory, dtype)


def _frombuffer(memory, dtype):
    from ._buffers import frombuffer

    return frombuffer(memory, dtype=dtype)


def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """The tensor of which ``input`` is the slice ``[start:end:step]`` along ``dim``, with the shape of ``src``."""
    stride, sizes = list(input.stride()), list(src.shape)
    if step != 1:
        stride[dim] //= step
    begin = 0 if start is None else start + (sizes[dim] if start < 0 else 0)
    return input.as_strided(sizes, stride, input.storage_offset() - begin * stride[dim])


# ---- what training for integers rounds


def _rounded(x, scale, zero_point, low, high):
    q = (x * (1 / scale) + zero_point).round()
    inside = (q >= low) & (q <= high)
    value = (q.clamp(low, high) - zero_point) * scale
    # The gradient goes through where nothing was cut.
    return value.detach() + (x - x.detach()) * inside if x.requires_grad else value


def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """``input`` rounded to multiples of ``scale`` around ``zero_point``, as integers in a range would stand for it."""
    if not quant_min <= quant_max:
        raise RuntimeError(f"`quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}")
    return _rounded(_tensor("fake_quantize_per_tensor_affine", "input", input), scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """``fake_quantize_per_tensor_affine`` with a scale and a zero point for each place along ``axis``."""
    if zero_point.dtype not in (_C.int32, _C.float32, _C.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    if scale.dim() != 1 or scale.shape != zero_point.shape or scale.numel() != input.shape[axis]:
        raise RuntimeError(
            f"fake_quantize_per_channel_affine: scale {tuple(scale.shape)} and zero_point {tuple(zero_point.shape)} need "
            f"one element for each of the {input.shape[axis]} places along dimension {axis}"
        )
    shape = [-1 if d == axis % input.dim() else 1 for d in range(input.dim())]
    return _rounded(input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)
