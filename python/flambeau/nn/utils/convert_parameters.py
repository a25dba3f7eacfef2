"""Parameters as one long vector, and back."""

from ... import _C


def parameters_to_vector(parameters):
    """All elements of ``parameters``, one after another."""
    parameters = list(parameters)
    _one_device(parameters)
    return _C.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec, parameters):
    """Make ``parameters`` views of consecutive pieces of ``vec``."""
    from ..._tensor import Tensor

    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _one_device(parameters)
    at = 0
    for param in parameters:
        n = param.numel()
        param.data = vec[at : at + n].view_as(param).data
        at += n


def _one_device(parameters):
    devices = {param.device for param in parameters}
    if len(devices) > 1:
        raise TypeError(
            f"Found two parameters on different devices, this is currently not supported: {sorted(map(str, devices))}"
        )
