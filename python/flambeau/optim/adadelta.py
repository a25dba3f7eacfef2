"""Adadelta: steps in the unit of the parameter, without a rate to choose."""

from ._rules import RuleOptimizer
from .optimizer import check_common, check_not_negative

__all__ = ["Adadelta"]


class Adadelta(RuleOptimizer):
    """``p -= lr sqrt(d + eps) / sqrt(v + eps) g``, with ``d`` and ``v`` averages of squared steps and gradients.

    Source: Zeiler, 2012.
    """

    _rule = "adadelta"

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_common(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        defaults = dict(
            lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
            foreach=foreach, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _numbers(self, group, state, t):
        return {
            "weight_decay": group["weight_decay"], "rho": group["rho"], "share": 1 - group["rho"], "eps": group["eps"],
            "step": -group["lr"],
        }, ()  # fmt: skip
