"""Instance normalisation: by the mean and variance of each channel of each sample."""

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """Source: Ulyanov and others, "Instance normalization", 2016."""

    _no_batch_dims = None

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None,
        *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        return self._no_batch_dims

    def _check_input_dim(self, input):
        self._expect_dims(input, self._no_batch_dims, self._no_batch_dims + 1)

    def _handle_no_batch_input(self, input):
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            kept = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if kept:
                name = type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, kept))} for {name} with "
                    f"track_running_stats=False: remove them, or make the {name} with track_running_stats=True"
                )
                for key in kept:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input):
        """The same shape; the batch dimension may be absent."""
        self._check_input_dim(input)
        dim = input.dim() - self._get_no_batch_dim()
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(dim)}."
                )
            from warnings import warn

            warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._get_no_batch_dim():
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample of (N, C, L)."""

    _no_batch_dims = 2


class InstanceNorm2d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample of (N, C, H, W)."""

    _no_batch_dims = 3


class InstanceNorm3d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample of (N, C, D, H, W)."""

    _no_batch_dims = 4


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def initialize_parameters(self, input):
        """Make what there is for this input's channels."""
        if self.has_uninitialized_params():
            self._check_input_dim(input)
            if input.dim() == self._no_batch_dims:
                input = input.unsqueeze(0)
            super().initialize_parameters(input)


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """:class:`InstanceNorm1d` that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm1d
    _no_batch_dims = 2


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """:class:`InstanceNorm2d` that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm2d
    _no_batch_dims = 3


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """:class:`InstanceNorm3d` that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm3d
    _no_batch_dims = 4
