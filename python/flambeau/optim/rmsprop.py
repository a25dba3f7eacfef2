"""RMSprop: steps scaled by the running mean of squared gradients."""

from ._rules import RuleOptimizer
from .optimizer import check_common, check_not_negative

__all__ = ["RMSprop"]


class RMSprop(RuleOptimizer):
    """``p -= lr g / (sqrt(v) + eps)``, with ``v`` an average of squared gradients (their variance if ``centered``).

    Sources: Hinton's lectures, 2012; ``centered``: Graves, 2013.
    """

    _rule = "rmsprop"
    _settings = {**RuleOptimizer._settings, "momentum": 0, "centered": False}

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False,
        foreach=None, maximize=False, differentiable=False,
    ):  # fmt: skip
        check_common(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = dict(
            lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
            capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _switches(self, group):
        on = {"momentum": group["momentum"] > 0, "centered": group["centered"]}
        return super()._switches(group) + [name for name, value in on.items() if value]

    def _numbers(self, group, state, t):
        return {
            "weight_decay": group["weight_decay"], "alpha": group["alpha"], "share": 1 - group["alpha"],
            "eps": group["eps"], "momentum": group["momentum"], "step": -group["lr"],
        }, ()  # fmt: skip
