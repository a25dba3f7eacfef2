"""Adam and its kin: steps scaled by running means of the gradient and of its square."""

from ._rules import RuleOptimizer
from .optimizer import check_betas, check_common, check_not_negative

__all__ = ["Adam"]


class Adam(RuleOptimizer):
    """``m`` and ``v`` average gradient and squared gradient; ``p -= lr m' / (sqrt(v') + eps)``, both bias-corrected.

    ``foreach``, ``fused`` and ``capturable`` are accepted: there is one native step for all parameters of a group.
    Sources: Kingma and Ba, 2014; ``amsgrad``: Reddi and others, 2018; ``decoupled_weight_decay``: Loshchilov and
    Hutter, 2017.
    """

    _rule = "adam"
    _settings = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "fused": None, "decoupled_weight_decay": False,
    }  # fmt: skip

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
        maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):  # fmt: skip
        check_common(lr, foreach, fused, differentiable)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, foreach=foreach,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _switches(self, group):
        on = {"amsgrad": group["amsgrad"], "decoupled": group["decoupled_weight_decay"]}
        return super()._switches(group) + [name for name, value in on.items() if value]

    def _numbers(self, group, state, t):
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        return {
            "weight_decay": decay, "shrink": 1 - lr * decay, "share1": 1 - beta1, "beta2": beta2, "share2": 1 - beta2,
            "correction": (1 - beta2**t) ** 0.5, "eps": group["eps"], "step": -(lr / (1 - beta1**t)),
        }, ()  # fmt: skip


class _Decoupling(RuleOptimizer):
    """What NAdam and RAdam share."""

    _settings = {**RuleOptimizer._settings, "decoupled_weight_decay": False}

    def _check(self, lr, betas, eps, weight_decay):
        check_common(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)

    def _switches(self, group):
        return super()._switches(group) + ["decoupled"] * bool(group["decoupled_weight_decay"])
