"""Schedules: how the learning rate of each group goes on from step to step.

A schedule computes the next rate from the present one, so that several can act on one optimizer; the closed forms
serve jumps to a given epoch.
"""

import math
from bisect import bisect_right
from collections import Counter

from .._tensor import Tensor
from .optimizer import Optimizer

__all__ = [
    "LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
    "PolynomialLR", "CosineAnnealingLR", "SequentialLR", "ChainedScheduler",
]  # fmt: skip


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'optim.lr_scheduler.{name}' yet")


def _plain(value):
    return value.clone() if isinstance(value, Tensor) else value


def _set_rate(group, rate):
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(rate.item() if isinstance(rate, Tensor) else rate)
    else:
        group["lr"] = rate


def _watch_steps(optimizer):
    """Have ``optimizer`` remember that it stepped, so that a wrong order of calls can be told."""
    if getattr(optimizer.step, "_wrapped_by_lr_sched", False):
        return
    from functools import wraps
    from weakref import ref

    plain = type(optimizer).step
    held = ref(optimizer)

    @wraps(plain)
    def step(*args, **kwargs):
        me = held()
        me._opt_called = True
        return plain(me, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base of all schedules: a subclass gives ``get_lr``, the rates after this step.

    ``last_epoch`` is the number of the step to go on from; -1 starts anew.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _plain(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0: last_epoch={last_epoch}"
                )
        self.base_lrs = [_plain(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        """Set the rates with which the first step is made."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """All that differs from one schedule of this kind to another, the optimizer aside."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take back what ``state_dict`` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that are in force."""
        return self._last_lr

    def get_lr(self):
        """The rates after this step."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr method")

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            from warnings import warn

            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3)

    def step(self, epoch=None):
        """Go on by one; with ``epoch`` go to that one."""
        from warnings import warn

        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call them in the opposite order, "
                "or the first value of the learning rate schedule is skipped",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warn("step(epoch) is deprecated: call step() after each epoch", stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set_rate(group, rate)
        self._last_lr = [_plain(group["lr"]) for group in self.optimizer.param_groups]

    def _rates(self):
        return [_plain(group["lr"]) for group in self.optimizer.param_groups]


class _Factored(LRScheduler):
    """A schedule that multiplies the present rate by a factor that depends on the epoch alone."""

    def _factor(self):
        """The factor of this step; None leaves the rates as they are."""
        raise NotImplementedError

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        factor = self._factor()
        return self._rates() if factor is None else [group["lr"] * factor for group in self.optimizer.param_groups]


class _ByFunction(LRScheduler):
    """A schedule by functions of the epoch, one for all groups or one each."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """The state; of functions only the attributes of callable objects are kept, not code."""
        from types import FunctionType

        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(f, FunctionType) else dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Take back what ``state_dict`` gave."""
        state = dict(state_dict)
        kept = state.pop("lr_lambdas", [])
        self.__dict__.update(state)
        for function, attributes in zip(self.lr_lambdas, kept):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_ByFunction):
    """The first rate times ``lr_lambda(epoch)``."""

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunction):
    """The present rate times ``lr_lambda(epoch)``, from the second step on."""

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        if self._is_initial:
            return self._rates()
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(_Factored):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return None if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(_Factored):
    """Times ``gamma`` at each of ``milestones``."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        times = self.milestones.get(self.last_epoch, 0)
        return self.gamma**times if times else None

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(_Factored):
    """Times ``factor`` for the first ``total_iters`` steps."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _get_closed_form_lr(self):
        inside = self.last_epoch < self.total_iters
        return [base * (self.factor + (not inside) * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(_Factored):
    """A factor that goes linearly from ``start_factor`` to ``end_factor`` in ``total_iters`` steps."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch)
        rise = self.end_factor - self.start_factor
        return [base * (self.start_factor + rise * done / self.total_iters) for base in self.base_lrs]


class ExponentialLR(_Factored):
    """Times ``gamma`` at every step."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return None if self._is_initial else self.gamma

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(_Factored):
    """To zero in ``total_iters`` steps, as ``(1 - epoch / total_iters) ** power``."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return (left / before) ** self.power

    def _get_closed_form_lr(self):
        done = min(self.total_iters, self.last_epoch)
        return [base * (1.0 - done / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the first rate to ``eta_min`` in ``T_max`` steps along half a cosine, and back. Source: Loshchilov and
    Hutter, "SGDR", 2016.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._rates()
        groups = self.optimizer.param_groups
        if self._step_count == 1 and epoch > 0:
            return [low + (base - low) * (1 + math.cos(epoch * math.pi / period)) / 2 for base in self.base_lrs]
        if (epoch - 1 - period) % (2 * period) == 0:  # the turning point, where the quotient below is 0/0
            rise = 1 - math.cos(math.pi / period)
            return [group["lr"] + (base - low) * rise / 2 for base, group in zip(self.base_lrs, groups)]
        now, before = 1 + math.cos(math.pi * epoch / period), 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self):
        low = self.eta_min
        part = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [low + (base - low) * part / 2 for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """Schedules one after another: the next takes over at each of ``milestones``."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if not schedulers:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{type(self).__name__} at index {i} should have `optimizer` as its attribute.")
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} that has another one"
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            _rewind(scheduler)
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def _initial_step(self):
        self._schedulers[0]._initial_step()

    def step(self, epoch=None):
        """Go on by one, in the schedule whose turn it is."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """The state, and the states of the schedules."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take back what ``state_dict`` gave."""
        state = dict(state_dict)
        inner = state.pop("_schedulers")
        self.__dict__.update(state)
        for scheduler, part in zip(self._schedulers, inner):
            scheduler.load_state_dict(part)


def _rewind(scheduler):
    """Take back the step that a schedule made when it was made."""
    if isinstance(scheduler, SequentialLR):
        for inner in scheduler._schedulers:
            _rewind(inner)
    scheduler.last_epoch -= 1


class ChainedScheduler(LRScheduler):
    """Schedules that act on one optimizer at every step, one after another."""

    def __init__(self, schedulers, optimizer=None):
        if not schedulers:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} that has another one"
                )
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = self._rates()

    def step(self):
        """Go on by one in each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
