"""RAdam: Adam that waits until the variance of its scaling can be told."""

from .adam import _Decoupling

__all__ = ["RAdam"]


class RAdam(_Decoupling):
    """Adam whose scaling is rectified, and left out in the first steps. Source: Liu and others, 2019."""

    _rule = "radam"

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        self._check(lr, betas, eps, weight_decay)
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
            capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
        )  # fmt: skip
        super().__init__(params, defaults)

    def _numbers(self, group, state, t):
        lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
        left = 1 - beta2**t
        longest = 2 / (1 - beta2) - 1  # of the moving average, and what it is by now
        length = longest - 2 * t * beta2**t / left
        rectified = length > 5.0
        rectifier = 1.0
        if rectified:
            part = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            rectifier = part**0.5
        return {
            "weight_decay": decay, "shrink": 1 - lr * decay, "share1": 1 - beta1, "beta2": beta2, "share2": 1 - beta2,
            "correction1": 1 - beta1**t, "correction2": left**0.5, "eps": group["eps"], "lr": lr,
            "rectifier": rectifier,
        }, ("rectified",) * bool(rectified)  # fmt: skip
