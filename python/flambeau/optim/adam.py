"""Adam: steps scaled by running means of the gradient and of its square."""

from .. import _C
from .optimizer import Optimizer, check_common, number, run_closure

__all__ = ["Adam"]


class Adam(Optimizer):
    """``m`` and ``v`` average gradient and squared gradient; ``p -= lr m' / (sqrt(v') + eps)``, both bias-corrected.

    ``foreach``, ``fused`` and ``capturable`` are accepted: there is one native step for all parameters of a group.
    Sources: Kingma and Ba, 2014; ``amsgrad``: Reddi and others, 2018; ``decoupled_weight_decay``: Loshchilov and
    Hutter, 2017.
    """

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None,
        maximize=False, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):  # fmt: skip
        check_common(lr, foreach, fused, differentiable)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = dict(
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, foreach=foreach,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("amsgrad", False), ("maximize", False), ("foreach", None), ("capturable", False),
                ("differentiable", False), ("fused", None), ("decoupled_weight_decay", False),
            ):  # fmt: skip
                group.setdefault(name, value)
            for param in group["params"]:
                kept = self.state.get(param)
                if kept and not isinstance(kept["step"], _C.TensorBase):  # files of old versions hold a number
                    kept["step"] = _C.tensor(float(kept["step"]), dtype=_C.float32)

    def step(self, closure=None):
        """Change the parameters once; returns what ``closure`` returns."""
        with self._recording():
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param.grad is not None]
                if params:
                    self._step_group(group, params)
        return loss

    def _step_group(self, group, params):
        amsgrad = group["amsgrad"]
        states = [self.state[param] or self._start(param, amsgrad) for param in params]
        grads = [param.grad for param in params]
        plain = group["differentiable"] or any(param.is_complex() for param in params)
        update = _step_by_operations if plain else _C._adam_step
        beta1, beta2 = group["betas"]
        update(
            params, grads, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if amsgrad else [], [s["step"] for s in states], number(group["lr"]),
            number(beta1), number(beta2), number(group["weight_decay"]), group["eps"], amsgrad, group["maximize"],
            group["decoupled_weight_decay"],
        )  # fmt: skip

    def _start(self, param, amsgrad):
        """The state of ``param`` before its first step."""
        state = self.state[param]
        state["step"] = _C.tensor(0.0, dtype=_C.float32)
        state["exp_avg"] = _C.zeros_like(param)
        state["exp_avg_sq"] = _C.zeros_like(param)
        if amsgrad:
            state["max_exp_avg_sq"] = _C.zeros_like(param)
        return state


def _step_by_operations(
    params, grads, means, squares, max_squares, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled
):
    """The step in tensor operations, with the arguments of the native one: it can be differentiated."""
    for i, (param, grad) in enumerate(zip(params, grads)):
        mean, square = means[i], squares[i]
        steps[i] += 1
        t = steps[i].item()
        if maximize:
            grad = -grad
        if weight_decay != 0:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        target = param
        if param.is_complex():  # a complex number is two real ones
            grad, mean, square, target = (_C.view_as_real(x) for x in (grad, mean, square, param))
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if amsgrad:
            largest = _C.view_as_real(max_squares[i]) if param.is_complex() else max_squares[i]
            largest.copy_(_C.maximum(largest, square))
            square = largest
        denominator = (square.sqrt() / (1 - beta2**t) ** 0.5).add_(eps)
        target.addcdiv_(mean, denominator, value=-(lr / (1 - beta1**t)))
