"""A module whose gradients are averaged over the processes of a group."""

from contextlib import contextmanager, nullcontext

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """``module``, with gradients averaged over the processes of a group; for one process they are what they are.

    The wrapped module is the attribute ``module``, so keys of the state start with "module.". Needs
    ``torch.distributed.init_process_group``, which refuses more than one process.
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=None, init_sync=True,
        process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
        gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None, param_to_hook_all_reduce=None,
        mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False, forward_sync_buffers=None, **_,
    ):  # fmt: skip
        from ...distributed.groups import _get_default_group

        super().__init__()
        self.process_group = _get_default_group() if process_group is None else process_group
        parameters = list(module.parameters())
        if not any(p.requires_grad for p in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if device_ids and any(p.device.type == "cpu" for p in parameters):
            raise ValueError(
                f"DistributedDataParallel device_ids and output_device arguments only work with GPU modules, but got "
                f"device_ids {device_ids} and parameters on the CPU"
            )
        self.module = module
        self.device_ids = None
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs, **kwargs):
        """What the wrapped module gives."""
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self):
        """A block in which gradients add up without being averaged."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A block in which processes may have different numbers of batches."""
        return nullcontext()

    def register_comm_hook(self, state, hook):
        """A function that would average gradients its own way: refused, nothing is sent."""
        raise NotImplementedError("DistributedDataParallel.register_comm_hook: flambeau does not send gradients yet")
