"""The base of all schedules."""

from ..._tensor import Tensor
from ..optimizer import Optimizer


def plain(value):
    return value.clone() if isinstance(value, Tensor) else value


def set_rate(group, rate):
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
                group.setdefault("initial_lr", plain(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0: last_epoch={last_epoch}"
                )
        self.base_lrs = [plain(group["initial_lr"]) for group in optimizer.param_groups]
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
            set_rate(group, rate)
        self._last_lr = [plain(group["lr"]) for group in self.optimizer.param_groups]

    def _rates(self):
        return [plain(group["lr"]) for group in self.optimizer.param_groups]


def one_each(name, optimizer, value):
    """A setting for each group: ``value`` is one for all, or a list."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [plain(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {groups}."
        )
    return [plain(item) for item in value]


def check_optimizer(optimizer):
    """``TypeError`` unless it is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class CyclesMomentum:
    """What schedules share that move the momentum against the rate: SGD's ``momentum`` or Adam's first beta."""

    def _start_momentum(self, optimizer, base_momentum, max_momentum, last_epoch):
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        base, most = (
            one_each("base_momentum", optimizer, base_momentum), one_each("max_momentum", optimizer, max_momentum)
        )  # fmt: skip
        if last_epoch == -1:
            for low, high, group in zip(base, most, optimizer.param_groups):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return base, most

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum
