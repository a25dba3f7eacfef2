"""Averages of models over training (SWA and EMA).

Source: Izmailov and others, "Averaging weights leads to wider optima and better generalization", 2018.
"""

import math
from copy import deepcopy
from itertools import chain

from .. import _C
from .._grad_mode import no_grad
from ..nn import Module
from .lr_scheduler import LRScheduler
from .lr_scheduler._base import one_each

__all__ = [
    "AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn",
    "get_swa_avg_fn",
]  # fmt: skip


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """A function that gives ``decay`` times the average plus the rest of the parameter."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """A function that gives the mean of all parameters so far."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _lerps(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay=0.999):
    """:func:`get_ema_avg_fn` for lists of tensors, in place."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, param in zip(ema_param_list, current_param_list):
            if _lerps(average):
                average.lerp_(param, 1 - decay)
            else:
                average.copy_(average * decay + param * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """:func:`get_swa_avg_fn` for lists of tensors, in place."""

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, param in zip(averaged_param_list, current_param_list):
            if _lerps(average):
                average.lerp_(param, 1 / (float(num_averaged) + 1))
            else:
                average.copy_(average + (param - average) / (num_averaged + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` that ``update_parameters`` turns into an average.

    ``avg_fn(average, param, n)`` gives a new average, ``multi_avg_fn(averages, params, n)`` changes lists; the default
    is the mean. With ``use_buffers`` buffers are averaged too, else copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model):
        """Take ``model`` into the average."""
        buffers = self.use_buffers
        mine = chain(self.module.parameters(), self.module.buffers()) if buffers else self.parameters()
        theirs = chain(model.parameters(), model.buffers()) if buffers else model.parameters()
        pairs = [(average.detach(), param.detach().to(average.device)) for average, param in zip(mine, theirs)]
        if self.n_averaged == 0:
            for average, param in pairs:
                average.copy_(param)
        elif self.avg_fn is not None:
            for average, param in pairs:
                average.copy_(self.avg_fn(average, param, self.n_averaged.to(average.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            alike = {}
            for average, param in pairs:
                averages, params = alike.setdefault((str(average.device), average.dtype), ([], []))
                averages.append(average)
                params.append(param)
            for averages, params in alike.values():
                update(averages, params, self.n_averaged.to(averages[0].device))
        if not buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of ``model``'s batch norms anew, over all of ``loader``."""
    from ..nn.modules.batchnorm import _BatchNorm

    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to ``swa_lr`` in ``anneal_epochs`` epochs, along a cosine or a line; there it stays."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for rate, group in zip(one_each("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """How much of the way is done at a step."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self):
        """The rates after this step."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, goal = group["lr"], group["swa_lr"]
            first = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + first * (1 - now))
        return rates
