"""Resilient backpropagation: steps by the sign of the gradient alone."""

from .. import _C
from ._rules import RuleOptimizer, zero_step
from .optimizer import check_common, number

__all__ = ["Rprop"]


class Rprop(RuleOptimizer):
    """Each element has a step that grows while the gradient keeps its sign and shrinks where that turns.

    For gradients of the whole data. Source: Riedmiller and Braun, 1993.
    """

    _rule = "rprop"

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
        maximize=False, differentiable=False,
    ):  # fmt: skip
        check_common(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = dict(
            lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize, differentiable=differentiable,
            capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, param, group, switches):
        lr = number(group["lr"])
        size = _C.full_like(param.grad, complex(lr, lr) if param.is_complex() else lr)
        return {"step": zero_step(), "prev": _C.zeros_like(param), "step_size": size}

    def _numbers(self, group, state, t):
        (etaminus, etaplus), (least, most) = group["etas"], group["step_sizes"]
        return {"etaminus": etaminus, "etaplus": etaplus, "least": least, "most": most}, ()
