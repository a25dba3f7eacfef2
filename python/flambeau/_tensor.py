"""``Tensor``: what Python adds to the native tensor."""

from . import _C, _tensor_more

__all__ = ["Tensor"]


class Tensor(_C.TensorBase):
    """A strided array of numbers of one dtype on one device, with or without a record for differentiation."""

    __module__ = "flambeau"
    __array_priority__ = 1000  # NumPy arrays leave mixed arithmetic to tensors

    # ---- printing

    def __repr__(self, *, tensor_contents=None):
        return _C._tensor_str(self, tensor_contents)

    def __format__(self, spec):
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __dir__(self):
        return sorted({*dir(type(self)), *self.__dict__})

    # ---- differentiation

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradient of this tensor to ``grad`` of the leaves it comes from, or of ``inputs`` alone.

        A tensor of one element needs no ``gradient`` of its own. See :func:`flambeau.autograd.backward`.
        """
        if gradient is None and inputs is None:
            retain = create_graph if retain_graph is None else retain_graph
            _C._autograd_backward((self,), (None,), retain, create_graph, (), True, True)
            return
        from .autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    # ---- copies and files

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf and not self.__dict__.get("_computed_anew"):
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment: call detach() first, or copy what the tensor was computed from"
            )
        from copy import deepcopy

        from ._grad_mode import no_grad

        with no_grad():
            if self.is_meta or self.is_conj() or self.is_neg():
                made = self.detach().clone()
            else:  # one copy of a storage for all tensors of this deepcopy that share it
                storage = deepcopy(self.untyped_storage(), memo)
                made = _C._tensor_from_storage(storage, self.storage_offset(), self.size(), self.stride(), self.dtype)
        if type(self) is not type(made):
            made = made.as_subclass(type(self))
        memo[id(self)] = made
        if self.grad is not None:
            made.grad = deepcopy(self.grad, memo)
        if self.requires_grad and self.is_leaf:
            made.requires_grad_()
        if self.__dict__:
            made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def __reduce_ex__(self, proto):
        from . import _utils, serialization

        state = dict(self.__dict__)
        if self.is_meta:
            build = _utils._rebuild_meta_tensor_no_storage
            args = (self.dtype, tuple(self.size()), self.stride(), self.requires_grad)
        else:
            lazy = self.is_conj() or self.is_neg()
            build, args = serialization.tensor_parts(self.detach().clone() if lazy else self)
        if type(self) is Tensor and not state:
            return build, args
        return _utils._rebuild_from_type_v2, (build, type(self), args, state)

    def __setstate__(self, state):
        self.__dict__.update(state or {})

    def pin_memory(self, device=None):
        """Pinned memory is for copies to a GPU: an error without one."""
        raise RuntimeError(
            "pin_memory: Found no NVIDIA driver on your system. Memory is pinned for copies to a GPU, and there is none."
        )

    def share_memory_(self):
        """Memory that other processes can map is not supported yet."""
        raise NotImplementedError("share_memory_: flambeau has no tensors in memory shared between processes yet")

    def storage(self):
        """The memory that the tensor looks at, as numbers of its dtype. ``untyped_storage`` has the bytes."""
        from .storage import storage_of

        return storage_of(self)

    def storage_type(self):
        """The class of ``storage()``."""
        from .storage import storage_class

        return storage_class(self.dtype)

    # ---- other libraries

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array.dtype == bool:
            array = array.astype("uint8")
        return _C.from_numpy(array)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A capsule of DLPack, by which another library sees the same memory."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.is_meta:
            raise BufferError("a meta tensor holds no memory that DLPack could export")
        return _C._to_dlpack(self.clone() if copy else self, max_version)

    def __dlpack_device__(self):
        """The device as DLPack numbers it: the CPU is (1, 0)."""
        if self.device.type != "cpu":
            raise BufferError(f"DLPack export of {self.device} is not supported")
        return (1, 0)

    # ---- tensors of the same kind

    def new(self, *args, device=None):
        """A tensor of this dtype: of these sizes, uninitialised, or with these numbers. Old; see ``new_empty``."""
        from ._legacy import new

        return new(self, args, device)

    # ---- arithmetic

    def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
        """The p-norm of all elements, or along ``dim``."""
        from .functional import norm

        return norm(self, p, dim, keepdim, dtype=dtype)

    # ---- containers

    __hash__ = object.__hash__

    def __len__(self):
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self.flip(0) if self.dim() else self


    # ---- operations that have options of Python's

    def stft(self, *args, **kwargs):
        """`torch.stft` of this tensor."""
        from ._spectra import stft

        return stft(self, *args, **kwargs)

    def istft(self, *args, **kwargs):
        """`torch.istft` of this tensor."""
        from ._spectra import istft

        return istft(self, *args, **kwargs)

    def lu(self, pivot=True, get_infos=False):
        """`torch.lu` of this tensor."""
        from ._lowrank import lu

        return lu(self, pivot, get_infos)



_tensor_more.install(Tensor)
_C._set_tensor_class(Tensor)
