"""A module over the accelerators of a machine."""

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """``module``, called on parts of the batch on each accelerator; without any, called as it is.

    The wrapped module is the attribute ``module``, so keys of the state start with "module.".
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids:
            raise RuntimeError(
                f"DataParallel: device_ids {device_ids} were asked for, but flambeau has no CUDA devices: "
                "torch.cuda.is_available() is False"
            )
        self.module = module
        self.device_ids = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        """What the wrapped module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """``DataParallel`` as a function."""
    if device_ids:
        raise RuntimeError(f"data_parallel: device_ids {device_ids} were asked for, but flambeau has no CUDA devices")
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))
