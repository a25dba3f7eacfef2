"""Methods of ``Tensor`` that are seldom called, and those of tensors that flambeau does not have."""

from . import _C
from ._absent import refusing
from ._beyond import _QUANTIZED, _SPARSE


def apply_(self, callable):
    """Put ``callable`` of each element in its place. Slow: it is called once for each."""
    return _in_place("apply_", self, [self], callable)


def map_(self, tensor, callable):
    """Put ``callable(self's element, tensor's element)`` in place of each element. Slow."""
    return _in_place("map_", self, [self, tensor], callable)


def map2_(self, x, y, callable):
    """Put ``callable`` of three elements in place of each element of the first tensor. Slow."""
    return _in_place("map2_", self, [self, x, y], callable)


def _in_place(name, self, tensors, function):
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(f"Can't call {name}() on a tensor that requires grad. Use detach().{name}() instead.")
    for t in tensors[1:]:
        if t.dtype != self.dtype:
            raise TypeError(f"{name}: expected a tensor of {self.dtype}, got one of {t.dtype}")
    columns = [t.expand_as(self).reshape(-1).tolist() for t in tensors]
    values = [function(*row) for row in zip(*columns)]
    if not self.is_floating_point() and not self.is_complex():
        values = [int(v) for v in values]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def dim_order(self, *, ambiguity_check=False):
    """The dimensions in the order in which they lie in memory, from the widest steps to the narrowest."""
    strides, sizes = self.stride(), self.shape
    return tuple(sorted(range(self.dim()), key=lambda d: (-strides[d], d if sizes[d] != 1 else d)))


def const_data_ptr(self):
    """The address of the first element, for reading."""
    return self.data_ptr()


def module_load(self, other, assign=False):
    """What ``load_state_dict`` puts in the place of this tensor when it is given ``other``."""
    return other.detach() if assign else self.copy_(other).detach()


def resize(self, *sizes):
    """A view of other sizes; old, see ``reshape``."""
    return self.reshape(*sizes)


def resize_as(self, tensor):
    """A view of the sizes of another tensor; old, see ``reshape``."""
    return self.reshape(tensor.shape)


def index(self, positions, dims):
    """Refused: there are no first-class dimensions."""
    raise NotImplementedError("Tensor.index: first-class dimensions are not part of flambeau; use index_select or movedim")


def record_stream(self, s):
    """For tensors on a GPU: refused."""
    raise NotImplementedError(f"record_stream: the tensor is on {self.device}, which has no streams")


def reinforce(self, reward):
    """Removed from PyTorch in 2017: refused, see ``flambeau.distributions``."""
    raise RuntimeError("reinforce() was removed. Use torch.distributions instead: -(m.log_prob(action) * reward)")


def to_dense(self, dtype=None, *, masked_grad=True):
    """The tensor itself, in ``dtype``: it is dense."""
    return self if dtype is None else self.to(dtype)


def dequantize(self):
    """The tensor in float32: none is quantized, so it holds its values."""
    return self.float()


def to_mkldnn(self, dtype=None):
    """Refused: tensors have one layout in memory."""
    raise NotImplementedError("to_mkldnn: flambeau's kernels take tensors as they are; leave the call out")


def to_padded_tensor(self, padding, output_size=None):
    """Refused: the tensor is not nested."""
    raise NotImplementedError("to_padded_tensor: nested tensors are not part of flambeau; see nn.utils.rnn.pad_sequence")


def sparse_dim(self):
    """How many dimensions are sparse: none."""
    return 0


def dense_dim(self):
    """How many dimensions are dense: all."""
    return self.dim()


def is_distributed(self):
    """Whether it is one part of a larger tensor: no."""
    return False


def is_nonzero(self):
    """Whether the one element differs from zero."""
    return bool(self)


def is_same_size(self, other):
    """Whether another tensor has the same shape."""
    return self.shape == other.shape


def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    """`torch.slice_inverse` of this tensor."""
    from ._more import slice_inverse

    return slice_inverse(self, src, dim, start, end, step)


def _removed(name, instead):
    text = (
        "This function was deprecated since version 1.9 and is now removed. "
        f"torch.{name} became torch.linalg.{instead}."
    )
    return refusing(name, RuntimeError, text, f"Removed from PyTorch: refused, see ``linalg.{instead}``.")


_REFUSED = {
    (RuntimeError, f"the tensor is not sparse, and {_SPARSE}"): "ccol_indices coalesce col_indices crow_indices indices is_coalesced "
    "row_indices values smm sspaddmm resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_",
    (NotImplementedError, _SPARSE): "sparse_mask to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc",
    (NotImplementedError, f"the tensor is not quantized, and {_QUANTIZED}"): "int_repr q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points q_scale q_zero_point qscheme",
    (NotImplementedError, "numbers of two half precision parts are not part of flambeau; use cfloat"): "chalf",
    (RuntimeError, "flambeau has no such devices; use device 'cpu'"): "ipu mtia xpu",
}


def _grad_dtype(self):
    """The dtype of gradients: the tensor's."""
    return self.dtype


def install(cls):
    """Give the class what is here."""
    for name, function in globals().items():
        if getattr(function, "__module__", None) == __name__ and not name.startswith("_") and name != "install":
            setattr(cls, name, function)
    for (error, why), names in _REFUSED.items():
        for name in names.split():
            setattr(cls, name, refusing(name, error, f"{name}: {why}", f"Refused: {why}."))
    for name, instead in (("solve", "solve"), ("lstsq", "lstsq"), ("eig", "eig"), ("symeig", "eigh")):
        setattr(cls, name, _removed(name, instead))
    for name in ("is_ipu", "is_maia", "is_mtia", "is_vulkan", "is_xla", "volatile"):
        setattr(cls, name, property(lambda self: False, doc="False: there are no such tensors."))
    cls.grad_dtype = property(_grad_dtype)
