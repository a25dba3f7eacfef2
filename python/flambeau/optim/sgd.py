"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from .. import _C
from .optimizer import Optimizer, check_common, number, run_closure

__all__ = ["SGD"]


class SGD(Optimizer):
    """``b = momentum b + (1 - dampening) g; p -= lr b``, with ``g`` the gradient plus ``weight_decay`` times ``p``.

    ``foreach`` and ``fused`` are accepted: there is one native step for all parameters of a group.
    Source of ``nesterov``: Sutskever and others, 2013.
    """

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_common(lr, foreach, fused, differentiable)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = dict(
            lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("nesterov", False), ("maximize", False), ("foreach", None), ("differentiable", False), ("fused", None)
            ):  # fmt: skip
                group.setdefault(name, value)

    def step(self, closure=None):
        """Change the parameters once; returns what ``closure`` returns."""
        with self._recording():
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param.grad is not None]
                grads = [param.grad for param in params]
                if not params:
                    continue
                momentum = group["momentum"]
                buffers = [self.state[p].get("momentum_buffer") for p in params] if momentum else [None] * len(params)
                plain = group["differentiable"] or any(param.is_complex() for param in params)
                update = _step_by_operations if plain else _C._sgd_step
                update(
                    params, grads, buffers, number(group["lr"]), number(momentum), group["dampening"],
                    number(group["weight_decay"]), group["nesterov"], group["maximize"],
                )  # fmt: skip
                if momentum:
                    for param, buffer in zip(params, buffers):
                        self.state[param]["momentum_buffer"] = buffer
        return loss


def _step_by_operations(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, maximize):
    """The step in tensor operations, with the arguments of the native one: it can be differentiated."""
    for i, (param, grad) in enumerate(zip(params, grads)):
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            if buffers[i] is None:
                buffers[i] = grad.clone().detach()
            else:
                buffers[i].mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffers[i], alpha=momentum) if nesterov else buffers[i]
        param.add_(grad, alpha=-lr)
