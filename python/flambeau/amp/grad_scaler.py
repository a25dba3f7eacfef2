"""Loss scaling: gradients that would underflow in half precision are computed larger than they are."""

import math
from warnings import warn

from .. import _C

__all__ = ["GradScaler", "OptState"]

_READY, _UNSCALED, _STEPPED = 0, 1, 2


class OptState:
    """What was done for an optimizer since the last ``update``."""

    READY, UNSCALED, STEPPED = _READY, _UNSCALED, _STEPPED


class GradScaler:
    """Scales the loss, unscales the gradients, leaves out steps with gradients that overflowed, and adapts the scale.

    The scale is divided after an overflow (times ``backoff_factor``) and multiplied by ``growth_factor`` after
    ``growth_interval`` steps without one. A scaler that is not enabled hands everything through.

    >>> import flambeau as torch
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.5)
    >>> scaler.scale(w.sum()).backward()
    >>> scaler.step(optimizer); scaler.update(); w
    tensor([0.5000, 0.5000], requires_grad=True)
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._optimizers = {}

    def is_enabled(self):
        """Whether the scaler does anything."""
        return self._enabled

    def scale(self, outputs):
        """A tensor, or tensors in containers, times the scale."""
        from .. import Tensor

        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * _C.tensor(self._scale, device=outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _state(self, optimizer):
        return self._optimizers.setdefault(id(optimizer), {"stage": _READY, "overflow": None})

    def _unscale_grads_(self, optimizer, allow_fp16=False):
        """Divide the gradients by the scale; whether one of them was infinite or not a number."""
        factor = 1.0 / self._scale
        overflow = False
        seen = False
        with _no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if not allow_fp16 and p.grad.dtype == _C.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    seen = True
                    p.grad.mul_(factor)
                    overflow = overflow or not bool(_C.isfinite(p.grad).all())
        return overflow if seen else None

    def unscale_(self, optimizer):
        """Divide an optimizer's gradients by the scale, for what looks at them before the step (clipping)."""
        if not self._enabled:
            return
        state = self._state(optimizer)
        if state["stage"] == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["overflow"] = self._unscale_grads_(optimizer)
        state["stage"] = _UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step, unless gradients overflowed; what the step returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._state(optimizer)
        if state["stage"] == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] == _READY:
            self.unscale_(optimizer)
        if state["overflow"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if state["overflow"] else optimizer.step(*args, **kwargs)
        state["stage"] = _STEPPED
        return result

    def update(self, new_scale=None):
        """Adapt the scale after the step, or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            found = [s["overflow"] for s in self._optimizers.values() if s["overflow"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(found))
        self._optimizers.clear()

    def _adapt(self, overflow):
        if overflow:
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = self._scale * self._growth_factor
            self._scale = grown if math.isfinite(grown) else self._scale
            self._growth_tracker = 0

    def get_scale(self):
        """The scale; 1 where the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self):
        """By how much the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set by how much the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """By how much the scale shrinks after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set by how much the scale shrinks after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """After how many steps without overflow the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set after how many steps without overflow the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        return self._growth_tracker if self._enabled else 0

    def state_dict(self):
        """Scale and settings; empty where the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self):
        if self._enabled and self._optimizers:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return self.__dict__.copy()


def _no_grad():
    from .. import no_grad

    return no_grad()
