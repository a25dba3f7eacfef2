"""Muon: momentum made orthogonal, for matrices in hidden layers."""

import math

from .. import _C
from .optimizer import Optimizer, number, run_closure

__all__ = ["Muon"]


class Muon(Optimizer):
    """The momentum, brought near the closest orthogonal matrix, is the step. For matrices only.

    ``ns_coefficients`` and ``ns_steps`` say how near; ``adjust_lr_fn`` how the rate depends on the shape: "original",
    "match_rms_adamw" or "spectral_unclamped". Sources: Jordan, "Muon", 2024; Liu and others, "Muon is scalable for
    LLM training", 2025.
    """

    def __init__(
        self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None,
    ):  # fmt: skip
        if isinstance(lr, _C.TensorBase) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov, ns_coefficients=ns_coefficients,
            eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn,
        )  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def step(self, closure=None):
        """Change the parameters once; returns what ``closure`` returns."""
        with self._recording():
            loss = run_closure(closure)
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._update(param, param.grad, group)
        return loss

    def _update(self, param, grad, group):
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state, momentum, lr = self.state[param], group["momentum"], number(group["lr"])
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = _C.zeros_like(grad)
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-lr * _ratio(group["adjust_lr_fn"], *param.shape))


def _ratio(rule, rows, columns):
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    if rule == "spectral_unclamped":
        return math.sqrt(rows / columns)
    return math.sqrt(max(1, rows / columns))


def _orthogonal(matrix, coefficients, steps, eps):
    """A matrix with the singular vectors of ``matrix`` and singular values near 1, by iterations in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.to(dtype=_C.bfloat16, copy=True)
    tall = matrix.size(0) > matrix.size(1)
    if tall:
        x = x.t()
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.t()
        x = _C.addmm(x, _C.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
