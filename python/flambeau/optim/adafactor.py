"""Adafactor: scaling by rows and columns, for little memory."""

from .. import _C
from ._rules import fill_settings, zero_step
from .optimizer import Optimizer, number, run_closure

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adam whose mean of squares is kept as one number a row and one a column, without momentum.

    ``eps`` is for the scaling (None: the dtype's) and for the size of the parameter, ``d`` clips the step.
    Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018.
    """

    def __init__(
        self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None,
        maximize=False,
    ):  # fmt: skip
        if isinstance(lr, _C.TensorBase) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        checks = (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        )
        for fits, message in checks:
            if not fits:
                raise ValueError(message)
        defaults = dict(
            lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
        )  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        fill_settings(self, {"foreach": None})

    def step(self, closure=None):
        """Change the parameters once; returns what ``closure`` returns."""
        with self._recording():
            loss = run_closure(closure)
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if param.is_complex():
                        raise RuntimeError("Adafactor does not support complex parameters")
                    state = self.state[param]
                    if not state:
                        state.update(self._start(param.grad))
                    self._update(param, -param.grad if group["maximize"] else param.grad, state, group)
        return loss

    @staticmethod
    def _start(grad):
        if grad.dim() <= 1:
            return {"step": zero_step(), "variance": _C.zeros_like(grad)}
        *rest, rows, columns = grad.shape
        return {
            "step": zero_step(),
            "row_var": grad.new_zeros([*rest, rows, 1]),
            "col_var": grad.new_zeros([*rest, 1, columns]),
        }

    @staticmethod
    def _update(param, grad, state, group):
        state["step"] += 1
        t, lr, (eps1, eps2) = state["step"].item(), number(group["lr"]), group["eps"]
        if eps1 is None:
            eps1 = _C.finfo(param.dtype).eps
        share = t ** group["beta2_decay"]
        size = param.norm(2).item() / param.numel() ** 0.5
        rate = max(eps2, size) * min(lr, 1 / t**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            for name, dim in (("row_var", -1), ("col_var", -2)):
                squares = _C.linalg_vector_norm(grad, 2, dim, True).square_().div_(grad.size(dim))
                state[name].lerp_(squares, share)
            variance = state["row_var"] @ state["col_var"]
            variance.div_(state["row_var"].mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            state["variance"].lerp_(grad * grad, share)
            variance = state["variance"].clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-rate / clip)
