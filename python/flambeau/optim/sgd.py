"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from .. import _C
from ._rules import RuleOptimizer
from .optimizer import check_common, check_not_negative

__all__ = ["SGD"]


class SGD(RuleOptimizer):
    """``b = momentum b + (1 - dampening) g; p -= lr b``, with ``g`` the gradient plus ``weight_decay`` times ``p``.

    ``foreach`` and ``fused`` are accepted: there is one native step for all parameters of a group.
    Source of ``nesterov``: Sutskever and others, 2013.
    """

    _rule = "sgd"
    _of_count = False
    _settings = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_common(lr, foreach, fused, differentiable)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super(RuleOptimizer, self).__setstate__(state)
        for group in self.param_groups:
            for name, value in self._settings.items():
                group.setdefault(name, value)

    def _switches(self, group):
        on = {"momentum": group["momentum"] != 0, "nesterov": group["nesterov"]}
        return super()._switches(group) + [name for name, value in on.items() if value]

    def _begin(self, param, group, switches):
        if "momentum" not in switches:
            return {}
        state = self.state[param]
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = _C.empty_like(param.grad, dtype=param.dtype)
            return {**state, "fresh": True}
        return state

    def _numbers(self, group, state, t):
        return {
            "weight_decay": group["weight_decay"], "momentum": group["momentum"], "share": 1 - group["dampening"],
            "step": -group["lr"],
        }, ("fresh",) * ("fresh" in state)  # fmt: skip
