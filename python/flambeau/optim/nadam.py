"""NAdam: Adam with Nesterov's momentum."""

from .. import _C
from ._rules import fill_settings, scalar_dtype
from .adam import _Decoupling
from .optimizer import check_not_negative, number

__all__ = ["NAdam"]


class NAdam(_Decoupling):
    """Adam with Nesterov's momentum, which is warmed up by ``momentum_decay``. Source: Dozat, 2016."""

    _rule = "nadam"
    _of_count = False

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
        decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        self._check(lr, betas, eps, weight_decay)
        check_not_negative(momentum_decay=momentum_decay)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
            differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        fill_settings(self, {}, scalars=("mu_product",))

    def _start(self, param, group, switches):
        state = super()._start(param, group, switches)
        step = state.pop("step")
        return {"step": step, "mu_product": _C.tensor(1.0, dtype=scalar_dtype()), **state}

    def _numbers(self, group, state, t):
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        mu, after = (beta1 * (1.0 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (t, t + 1))
        state["mu_product"] *= mu
        product = state["mu_product"] if group["differentiable"] else number(state["mu_product"])
        return {
            "weight_decay": decay, "shrink": 1 - lr * decay, "share1": 1 - beta1, "beta2": beta2, "share2": 1 - beta2,
            "correction": 1 - beta2**t, "eps": group["eps"], "step_grad": -lr * (1.0 - mu) / (1.0 - product),
            "step_mean": -lr * after / (1.0 - product * after),
        }, ()  # fmt: skip
