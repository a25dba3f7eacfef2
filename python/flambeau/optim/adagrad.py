"""Adagrad: steps scaled by the sum of squared gradients."""

from .. import _C
from ._rules import RuleOptimizer, zero_step
from .optimizer import check_common, check_not_negative

__all__ = ["Adagrad"]


class Adagrad(RuleOptimizer):
    """``p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum of g squared) + eps)``. Source: Duchi and others, 2011."""

    _rule = "adagrad"
    _settings = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None,
    ):  # fmt: skip
        check_common(lr, foreach, fused, differentiable)
        check_not_negative(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )  # fmt: skip
        defaults = dict(
            lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self._begin(param, group, ())

    def share_memory(self):
        """Move what is kept to shared memory, for processes that train one model together."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _start(self, param, group, switches):
        first = group["initial_accumulator_value"]
        return {
            "step": zero_step(),
            "sum": _C.full_like(param, complex(first, first) if param.is_complex() else first),
        }

    def _numbers(self, group, state, t):
        return {
            "weight_decay": group["weight_decay"], "eps": group["eps"],
            "step": -(group["lr"] / (1 + (t - 1) * group["lr_decay"])),
        }, ()  # fmt: skip
