"""Averaged stochastic gradient descent."""

from .. import _C
from ._rules import RuleOptimizer, fill_settings, scalar_dtype, zero_step
from .optimizer import check_common, check_not_negative, number

__all__ = ["ASGD"]


class ASGD(RuleOptimizer):
    """Gradient descent with a decaying rate; the state ``ax`` averages the parameter from step ``t0`` on.

    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.
    """

    _rule = "asgd"
    _of_count = False

    def __init__(
        self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False,
        differentiable=False, capturable=False,
    ):  # fmt: skip
        check_common(lr)
        check_not_negative(lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        defaults = dict(
            lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        fill_settings(self, {}, scalars=("eta", "mu"))

    def _start(self, param, group, switches):
        return {
            "step": zero_step(),
            "eta": _C.tensor(float(number(group["lr"])), dtype=scalar_dtype()),
            "mu": _C.tensor(1.0, dtype=scalar_dtype()),
            "ax": _C.zeros_like(param),
        }

    def _numbers(self, group, state, t):
        eta, mu, lr, lambd = number(state["eta"]), number(state["mu"]), group["lr"], group["lambd"]
        # Rounded as a fresh state is, also where a loaded one is wider.
        state["eta"].copy_(_C.tensor(float(number(lr / ((1 + lambd * lr * t) ** group["alpha"]))), dtype=scalar_dtype()))
        state["mu"].fill_(1 / max(1, t - group["t0"]))
        return {
            "weight_decay": group["weight_decay"], "shrink": 1 - lambd * eta, "step": -eta, "mu": mu,
        }, ("averaging",) * (mu != 1)  # fmt: skip
