"""Optimizers whose step is a rule of the kernel language: one native call for all parameters of a group.

The rule itself stands in the engine (``ops/optim/rules.rs``). Where a step is to be differentiated, the same rule is
carried out in tensor operations.
"""

import operator

from .. import _C
from .optimizer import Optimizer, number, run_closure

__all__ = ["RuleOptimizer", "fill_settings"]


def zero_step():
    """The count of a parameter's steps before the first one: a tensor, as in PyTorch's files."""
    return _C.tensor(0.0, dtype=scalar_dtype())


def scalar_dtype():
    """The dtype of numbers that are kept of a parameter."""
    return _C.float64 if _C.get_default_dtype() == _C.float64 else _C.float32


def fill_settings(optimizer, settings, scalars=("step",)):
    """Give groups of an old file the settings that they lack, and make tensors of numbers kept of parameters."""
    for group in optimizer.param_groups:
        for name, value in settings.items():
            group.setdefault(name, value)
        for param in group["params"]:
            kept = optimizer.state.get(param)
            for name in scalars:
                if kept and not isinstance(kept[name], _C.TensorBase):
                    kept[name] = _C.tensor(float(kept[name]), dtype=scalar_dtype())


class RuleOptimizer(Optimizer):
    """Base of optimizers with a rule: a subclass names it and says what it needs at each step."""

    _rule = None
    """The rule's name."""

    _of_count = True
    """Whether the numbers depend on nothing but the group and the count of steps."""

    _settings = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    """Settings that files of old versions lack."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls._rule is not None:
            cls._state, cls._numbers_of, cls._switches_of = _C._step_rule(cls._rule)

    def __setstate__(self, state):
        super().__setstate__(state)
        fill_settings(self, self._settings)

    def step(self, closure=None):
        """Change the parameters once; returns what ``closure`` returns."""
        with self._recording():
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [param for param in group["params"] if param.grad is not None]
                if params:
                    self._step_group(group, params)
        return loss

    # ---- what a subclass says

    def _switches(self, group):
        """The names of the rule's switches that are on."""
        on = {"maximize": group["maximize"], "decay": group.get("weight_decay", 0) != 0}
        return [name for name, value in on.items() if value]

    def _numbers(self, group, state, t):
        """The rule's numbers at step ``t`` of a parameter, by name, and the names of further switches.

        ``group`` holds plain numbers; where the step is differentiated, tensors stay tensors.
        """
        raise NotImplementedError

    def _start(self, param, group, switches):
        """What is kept of ``param`` before its first step."""
        state = {"step": zero_step()}
        for name, when in self._state:
            if not when or when in switches:
                state[name] = _C.zeros_like(param)
        return state

    def _begin(self, param, group, switches):
        """What is kept of ``param``; made where there is nothing yet."""
        state = self.state[param]
        if not state:
            state.update(self._start(param, group, switches))
        return state

    # ---- the step

    def _step_group(self, group, params):
        differentiable = group["differentiable"]
        if not differentiable:
            group = {name: number(value) for name, value in group.items()}
            if "betas" in group:
                group["betas"] = tuple(number(beta) for beta in group["betas"])
        switches = self._switches(group)
        states = [self._begin(param, group, switches) for param in params]
        counts = _C._count_up([s["step"] for s in states]) if "step" in states[0] else [None] * len(params)
        names = [name for name, when in self._state if not when or when in switches]
        batches, rows = {}, {}
        for param, state, t in zip(params, states, counts):
            key = t if self._of_count else id(param)
            if key not in rows:
                numbers, more = self._numbers(group, state, t)
                rows[key] = [numbers[name] for name in self._numbers_of], tuple(more)
            row, more = rows[key]
            tensors = [param, param.grad, *[state[name] for name in names]]
            if param.is_complex():  # a complex number is two real ones
                tensors = [_C.view_as_real(x) for x in tensors]
            batches.setdefault(more, []).append((tensors, row))
        for more, batch in batches.items():
            on = [*switches, *more]
            if differentiable:
                for tensors, row in batch:
                    _by_operations(self._rule, on, tensors, row)
            else:
                params_, grads, *kept = (list(column) for column in zip(*(tensors for tensors, _ in batch)))
                _C._step_by_rule(self._rule, on, params_, grads, kept, [row for _, row in batch])


_OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "gt": operator.gt, "lt": operator.lt, "eq": operator.eq, "abs": _C.abs, "sign": _C.sign, "sqrt": _C.sqrt,
    "reciprocal": _C.reciprocal, "select": _C.where, "fma": lambda a, b, c: a * b + c,
    "maximum": lambda a, b: _larger(_C.maximum, a, b), "minimum": lambda a, b: _larger(_C.minimum, a, b),
}  # fmt: skip


def _larger(choose, a, b):
    return choose(a, b if isinstance(b, _C.TensorBase) else _C.full_like(a, b))


def _by_operations(rule, switches, tensors, numbers):
    """A step in tensor operations, in place: it can be differentiated."""
    param = tensors[0]
    constants, steps, outputs = _C._step_program(rule, switches, param.dtype, [float(x) for x in numbers])
    values = [*tensors, *(literal if i is None else numbers[i] for i, literal in constants)]
    for name, dtype, args in steps:
        args = [values[i] for i in args]
        if name == "convert":
            values.append(args[0].to(dtype) if isinstance(args[0], _C.TensorBase) else args[0])
        else:
            values.append(_OPERATIONS[name](*args))
    for target, i in zip([param, *tensors[2:]], outputs):
        if values[i] is not target:
            target.copy_(values[i])
