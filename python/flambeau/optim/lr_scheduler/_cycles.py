"""Schedules that go up and down."""

import math
from types import FunctionType

from ._base import CyclesMomentum, LRScheduler, check_optimizer, one_each, set_rate

__all__ = ["CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR"]


class CyclicLR(CyclesMomentum, LRScheduler):
    """Between ``base_lr`` and ``max_lr`` and back, linearly, again and again.

    ``triangular2`` halves the height at each cycle, ``exp_range`` multiplies it by ``gamma`` at each step; ``scale_fn``
    replaces both. Source: Smith, "Cyclical learning rates for training neural networks", 2015.
    """

    def __init__(
        self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0,
        scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                set_rate(group, rate)
        self.max_lrs = one_each("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            base, most = self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = base, most
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """How high the cycle ``x`` (or the step, with ``scale_mode="iterations"``) goes."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        """The rates after this step; moves the momentum too."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        part = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * part * scale)
        return [low + (high - low) * part * scale for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """The state; of ``scale_fn`` only the attributes of a callable object are kept, not code."""
        state = super().state_dict()
        scale = state.pop("_scale_fn_custom")
        plain = scale is None or isinstance(scale, FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(scale.__dict__)
        return state

    def load_state_dict(self, state_dict):
        """Take back what ``state_dict`` gave."""
        state = dict(state_dict)
        kept = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if kept is not None:
            self._scale_fn_custom.__dict__.update(kept)


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the first rate to ``eta_min`` along half a cosine, then anew; cycles grow by ``T_mult`` from ``T_0`` on.

    Source: Loshchilov and Hutter, "SGDR", 2016.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        low, part = self.eta_min, 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * part / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Go on by one; with ``epoch``, which may be a fraction, go there."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def _go_to(self, epoch):
        first, grows = self.T_0, self.T_mult
        self.T_i, self.T_cur = first, epoch
        if epoch >= first and grows == 1:
            self.T_cur = epoch % first
        elif epoch >= first:
            done = int(math.log(epoch / first * (grows - 1) + 1, grows))  # so many cycles
            self.T_cur = epoch - first * (grows**done - 1) / (grows - 1)
            self.T_i = first * grows**done


class OneCycleLR(CyclesMomentum, LRScheduler):
    """Up to ``max_lr`` in the first ``pct_start`` of all steps, then down to almost nothing, with the momentum opposite.

    Source: Smith and Topin, "Super-convergence", 2017.
    """

    def __init__(
        self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
        anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
        final_div_factor=1e4, three_phase=False, last_epoch=-1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        most = one_each("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, most):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count_steps(total_steps, epochs, steps_per_epoch):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"total_steps": total_steps} if total_steps is not None else {
            "epochs": epochs, "steps_per_epoch": steps_per_epoch
        }  # fmt: skip
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _phases(self, pct_start, three_phase):
        """The last step of each phase, and between what it goes."""

        def phase(end, rates, momenta):
            return {
                "end_step": end, "start_lr": rates[0], "end_lr": rates[1], "start_momentum": momenta[0],
                "end_momentum": momenta[1],
            }  # fmt: skip

        last, up = self.total_steps - 1, float(pct_start * self.total_steps) - 1
        low, high = "base_momentum", "max_momentum"
        rise = phase(up, ("initial_lr", "max_lr"), (high, low))
        if not three_phase:
            return [rise, phase(last, ("max_lr", "min_lr"), (low, high))]
        down = float(2 * pct_start * self.total_steps) - 2
        return [
            rise, phase(down, ("max_lr", "initial_lr"), (low, high)), phase(last, ("initial_lr", "min_lr"), (high, high))
        ]  # fmt: skip

    def _anneal_func(self, start, end, part):
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self):
        """The rates after this step; moves the momentum too."""
        self._warn_outside_step()
        step, phases = self.last_epoch, self._schedule_phases
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        at = next((i for i, phase in enumerate(phases) if step <= phase["end_step"]), len(phases) - 1)
        phase, begin = phases[at], phases[at - 1]["end_step"] if at else 0.0
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                between = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(*between, part))
        return rates
