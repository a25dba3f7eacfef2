"""Adam for sparse gradients, which this engine has not."""

from .optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Refuses: there are no sparse tensors here, so no gradient is one."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        raise NotImplementedError(
            "SparseAdam steps by sparse gradients, and flambeau has no sparse tensors: use Adam, whose steps touch "
            "every row, with layers that have sparse=False"
        )
