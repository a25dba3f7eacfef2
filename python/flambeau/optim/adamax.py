"""Adamax: Adam with the largest gradient in place of the mean square."""

from ._rules import RuleOptimizer
from .optimizer import check_betas, check_common, check_not_negative

__all__ = ["Adamax"]


class Adamax(RuleOptimizer):
    """``p -= lr / (1 - beta1^t) m / u``, with ``u = max(beta2 u, abs(g) + eps)``. Source: Kingma and Ba, 2014."""

    _rule = "adamax"

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
        differentiable=False, capturable=False,
    ):  # fmt: skip
        check_common(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _numbers(self, group, state, t):
        beta1, beta2 = group["betas"]
        return {
            "weight_decay": group["weight_decay"], "share1": 1 - beta1, "beta2": beta2, "eps": group["eps"],
            "step": -(group["lr"] / (1 - beta1**t)),
        }, ()  # fmt: skip
