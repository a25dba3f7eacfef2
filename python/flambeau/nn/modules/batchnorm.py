"""Batch normalisation: by the mean and variance of each channel over the batch."""

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer
from .lazy import LazyModuleMixin, lazy_parameter
from .module import Module

__all__ = [
    "BatchNorm1d", "LazyBatchNorm1d", "BatchNorm2d", "LazyBatchNorm2d", "BatchNorm3d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """What batch and instance norms share: weight, bias and running statistics, a number a channel."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
        bias=True,
    ):  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(_C.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        tracks = track_running_stats
        self.register_buffer("running_mean", _C.zeros(num_features, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("running_var", _C.ones(num_features, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.long, device=device) if tracks else None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Means zero, variances one, nothing counted."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight one, bias zero, statistics anew."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        """``ValueError`` unless the input has dimensions that the class takes."""
        raise NotImplementedError

    def _expect_dims(self, input, *dims):
        if input.dim() not in dims:
            expected = " or ".join(f"{n}D" for n in dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self):
        """Channels and settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:  # files from before batches were counted
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                count = self.num_batches_tracked
                state_dict[key] = count if count is not None and not count.is_meta else _C.tensor(0, dtype=_C.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input):
        """The same shape; in training by the batch's statistics, which the running ones follow, else by those."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if kept else None, self.running_var if kept else None, self.weight, self.bias,
            by_batch, factor, self.eps,
        )  # fmt: skip


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        given = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, bias=False, **given)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = lazy_parameter(given)
            if bias:
                self.bias = lazy_parameter(given)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**given)
            self.running_var = UninitializedBuffer(**given)
            self.num_batches_tracked = _C.tensor(0, dtype=_C.long, device=device)

    def reset_parameters(self):
        """Set weight, bias and statistics, once their shape is known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Make what there is for this input's channels."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        names = ("weight", "bias") * self.affine + ("running_mean", "running_var") * self.track_running_stats
        for name in names:
            if getattr(self, name) is not None:
                getattr(self, name).materialize((self.num_features,))
        self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C) or (N, C, L), then weight and bias.

    Source: Ioffe and Szegedy, "Batch normalization", 2015.
    """

    def _check_input_dim(self, input):
        self._expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C, H, W), then weight and bias.

    Source: Ioffe and Szegedy, "Batch normalization", 2015.
    """

    def _check_input_dim(self, input):
        self._expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C, D, H, W), then weight and bias.

    Source: Ioffe and Szegedy, "Batch normalization", 2015.
    """

    def _check_input_dim(self, input):
        self._expect_dims(input, 5)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """:class:`BatchNorm1d` that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """:class:`BatchNorm2d` that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """:class:`BatchNorm3d` that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes of a group.

    It is made and converted to as in PyTorch; in training it needs processes and devices that this engine has not yet
    and says so, in evaluation it is a batch norm.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
        device=None, dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        """The same shape, in evaluation; refuses in training."""
        self._check_input_dim(input)
        if self.training or (self.running_mean is None and self.running_var is None):
            raise ValueError(
                f"SyncBatchNorm expected input tensor to be on an accelerator, got {input.device}: flambeau has no "
                "collective statistics yet; use BatchNorm1d, BatchNorm2d or BatchNorm3d in one process"
            )
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """``module`` with every batch norm in it made one of this class, with its parameters and statistics."""
        out = module
        if isinstance(module, _BatchNorm):
            out = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias"):
                if module.affine and getattr(module, name) is not None:
                    setattr(out, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(out, name, getattr(module, name))
            out.training = module.training
        for name, child in module.named_children():
            out.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return out
