"""Backward hooks of modules, by two identity operations: one on what goes in, one on what comes out.

Backward passes the outer gate first, which learns the gradients of the outputs, then the inner gate, which
learns those of the inputs and runs the hooks.
"""

from ..._tensor import Tensor
from ...autograd.function import Function


class _Gate(Function):
    """Identity whose backward shows the gradients to ``passed(grads)`` and passes on what that returns."""

    @staticmethod
    def forward(ctx, passed, *tensors):
        ctx.set_materialize_grads(False)
        ctx.passed = passed
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.passed(grads))


def _replaced(given, was, which):
    """The gradients after a hook returned ``given``."""
    if given is None:
        return was
    given = given if isinstance(given, tuple) else (given,)
    if len(given) != len(was):
        raise RuntimeError(f"backward hook returned an invalid number of {which}: {len(given)}, expected {len(was)}")
    return given


class BackwardGates:
    """The two gates of one call of ``module``."""

    def __init__(self, module, pre_hooks, hooks):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.entered = False
        self.n_inputs = 0
        self.grad_outputs = None

    def enter(self, args):
        """The positional arguments, with their tensors behind the inner gate."""
        self.n_inputs = len(args)
        at = [i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad]
        if not at:
            return args
        self.entered = True

        def passed(grads):
            full = [None] * len(args)
            for i, grad in zip(at, grads):
                full[i] = grad
            full = self._run(tuple(full))
            return tuple(full[i] for i in at)

        return self._through(passed, args, at)

    def leave(self, result):
        """The module's result, with its tensors behind the outer gate."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, (tuple, list)):
            from warnings import warn

            warn(
                "full backward hooks need a module that returns a tensor or a tuple of tensors; "
                f"{type(self.module).__name__} returned {type(result).__name__}, so its hooks do not run",
                stacklevel=3,
            )
            return result
        results = (result,) if single else tuple(result)
        at = [i for i, value in enumerate(results) if isinstance(value, Tensor) and value.requires_grad]
        if not at:
            return result

        def passed(grads):
            full = [None] * len(results)
            for i, grad in zip(at, grads):
                full[i] = grad
            full = tuple(full)
            for hook in self.pre_hooks:
                full = _replaced(hook(self.module, full), full, "grad_output")
            self.grad_outputs = full
            if not self.entered and self.hooks:
                self._warn_no_input()
                if self._run((None,) * self.n_inputs, check=False) is not None:
                    raise RuntimeError(
                        "backward hook for Modules where no input requires gradient should always return None"
                    )
            return tuple(full[i] for i in at)

        through = self._through(passed, results, at)
        return through[0] if single else type(result)(through) if type(result) in (tuple, list) else through

    @staticmethod
    def _warn_no_input():
        from warnings import warn

        warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients",
            stacklevel=2,
        )

    def _run(self, grad_inputs, check=True):
        if not check:
            given = [hook(self.module, grad_inputs, self.grad_outputs) for hook in self.hooks]
            return next((g for g in given if g is not None and any(x is not None for x in g)), None)
        for hook in self.hooks:
            grad_inputs = _replaced(hook(self.module, grad_inputs, self.grad_outputs), grad_inputs, "grad_input")
        return grad_inputs

    @staticmethod
    def _through(passed, values, at):
        out = list(values)
        for i, tensor in zip(at, _Gate.apply(passed, *(values[i] for i in at))):
            out[i] = tensor
        return tuple(out)
