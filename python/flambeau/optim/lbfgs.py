"""L-BFGS: a quasi-Newton method for full gradients."""

from .. import _C
from .._grad_mode import enable_grad, no_grad
from ._line_search import strong_wolfe
from .optimizer import Optimizer, check_common, number

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Newton's method with the curvature told from the last ``history_size`` steps; ``step`` needs a closure.

    ``line_search_fn`` is None (steps of ``lr``) or "strong_wolfe". One group only. Source: Nocedal and Wright,
    "Numerical Optimization", 2006, algorithms 7.4 and 7.5.
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
        line_search_fn=None, *, maximize=False,
    ):  # fmt: skip
        check_common(lr)
        defaults = dict(
            lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
            line_search_fn=line_search_fn, maximize=maximize,
        )  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # ---- all parameters as one vector

    def _gather_flat_grad(self):
        parts = []
        for param in self._params:
            grad = _C.zeros_like(param) if param.grad is None else param.grad
            parts.append((_C.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        flat = _C.cat(parts, 0)
        return flat.neg_() if self.param_groups[0].get("maximize", False) else flat

    def _add_grad(self, size, update):
        at = 0
        for param in self._params:
            real = _C.view_as_real(param) if param.is_complex() else param
            n = real.numel()
            real.add_(update[at : at + n].view_as(real), alpha=number(size))
            at += n

    def _loss(self, loss):
        return -float(loss) if self.param_groups[0].get("maximize", False) else float(loss)

    # ---- the step

    @no_grad()
    def step(self, closure):
        """Up to ``max_iter`` iterations; ``closure`` computes loss and gradients. Returns the loss before them."""
        closure = enable_grad()(closure)
        if not self._params:
            return closure()
        group = self.param_groups[0]
        state = self.state[self._params[0]]  # of all parameters; kept there so that it is cast when loaded
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = self._loss(first), 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first
        kept = {name: state.get(name) for name in _KEPT}
        for i in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            self._direction(kept, grad, state, group)
            kept["prev_loss"] = loss
            lr = number(group["lr"])
            start = state["n_iter"] == 1
            kept["t"] = min(1.0, 1.0 / grad.abs().sum()) * lr if start else lr
            slope = grad.dot(kept["d"])
            if slope > -group["tolerance_change"]:
                break
            last = i == group["max_iter"]
            loss, grad, used = self._move(closure, kept, loss, grad, slope, group, evaluations, last)
            evaluations += used
            state["func_evals"] += used
            if last or evaluations >= group["max_eval"] or grad.abs().max() <= group["tolerance_grad"]:
                break
            moved = kept["d"].mul(kept["t"]).abs().max()
            change = group["tolerance_change"]
            if moved <= change or abs(loss - kept["prev_loss"]) < change:
                break
        state.update(kept)
        return first

    def _direction(self, kept, grad, state, group):
        """Sets ``d``, where the next step goes: the gradient times the inverse Hessian as the history tells it."""
        if state["n_iter"] == 1:
            kept.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1, prev_flat_grad=grad.clone())
            return
        turns, moves, weights = kept["old_dirs"], kept["old_stps"], kept["ro"]
        y, s = grad.sub(kept["prev_flat_grad"]), kept["d"].mul(kept["t"])
        curvature = y.dot(s)
        if curvature > 1e-10:
            if len(turns) == group["history_size"]:
                for history in (turns, moves, weights):
                    history.pop(0)
            turns.append(y)
            moves.append(s)
            weights.append(1.0 / curvature)
            kept["H_diag"] = curvature / y.dot(y)
        n = len(turns)
        shares = state.setdefault("al", [None] * group["history_size"])
        q = grad.neg()
        for i in range(n - 1, -1, -1):
            shares[i] = moves[i].dot(q) * weights[i]
            q.add_(turns[i] * -shares[i])
        d = q.mul(kept["H_diag"])
        for i in range(n):
            d.add_(moves[i] * (shares[i] - turns[i].dot(d) * weights[i]))
        kept["d"] = d
        kept["prev_flat_grad"].copy_(grad)

    def _move(self, closure, kept, loss, grad, slope, group, evaluations, last):
        """Goes along ``d``; gives the loss and gradient there, and how often the closure was called."""
        search = group["line_search_fn"]
        if search is None:
            self._add_grad(kept["t"], kept["d"])
            if last:
                return loss, grad, 0
            loss = self._loss(closure())
            return loss, self._gather_flat_grad(), 1
        if search != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        before = [param.clone() for param in self._params]

        def evaluate(t):
            self._add_grad(t, kept["d"])
            value = self._loss(closure())
            there = self._gather_flat_grad()
            for param, old in zip(self._params, before):
                param.copy_(old)
            return value, there

        loss, grad, kept["t"], used = strong_wolfe(
            evaluate, kept["t"], kept["d"], loss, grad, slope, max_ls=group["max_eval"] - evaluations
        )
        self._add_grad(kept["t"], kept["d"])
        return loss, grad, used


_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")
