"""Derivatives held against finite differences."""

from warnings import warn

from .. import _C
from .._grad_mode import enable_grad, no_grad
from .._tensor import Tensor
from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative disagrees with finite differences."""


def _tensors(values):
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [x for x in values if isinstance(x, Tensor)]


def _continuous(x):
    return x.is_floating_point() or x.is_complex()


def _differentiable(values):
    return [x for x in _tensors(values) if x.requires_grad]


def _unravel(position, shape):
    at = []
    for size in reversed(shape):
        at.append(position % size)
        position //= size
    return tuple(reversed(at))


def _parts(y):
    """A complex tensor as its real and its imaginary part: derivatives of each are those of a real function."""
    return [_C.real(y), _C.imag(y)] if y.is_complex() else [y]


class _Check:
    """One function at one point: its derivatives by several ways, and comparisons.

    A direction of a complex input is a complex tensor: moving along it, the real output changes at the rate
    ``Re(conj(gradient) * direction)``. So real and complex inputs are compared by the same formula.
    """

    def __init__(self, func, inputs, eps, atol, rtol):
        self.func, self.inputs, self.eps, self.atol, self.rtol = func, inputs, eps, atol, rtol
        self.watched = _differentiable(inputs)
        self.outputs = _differentiable(func(*inputs))

    def values(self):
        """What the function gives now, without a record; what can have a derivative."""
        with no_grad():
            given = _tensors(self.func(*self.inputs))
        return [given[place].detach().clone() for place in self.places]

    def find_places(self):
        """Which of the tensors that the function gives have a derivative."""
        given = _tensors(self.func(*self.inputs))
        self.places = [place for place, y in enumerate(given) if y.requires_grad]

    def rates(self, x, direction):
        """By how much each output changes along a direction of ``x``, by central differences."""
        data = x.data  # not detach(): the version must stay, as tensors that the graph saved are put back before they are used
        kept = data.clone()
        ends = []
        for sign in (self.eps, -self.eps):
            data.copy_(kept + sign * direction)
            ends.append(self.values())
        data.copy_(kept)
        return [(plus - minus) / (2 * self.eps) for plus, minus in zip(*ends)]

    def directions(self, x):
        """The unit directions: those of the elements, and of their imaginary parts."""
        for unit in (1, 1j) if x.is_complex() else (1,):
            for position in range(x.numel()):
                direction = _C.zeros(x.shape, dtype=x.dtype)
                direction[_unravel(position, x.shape)] = unit
                yield direction

    def random_direction(self, like):
        """A direction of length one, the same in each process, without a draw from the user's random numbers."""
        count = like.numel() * (2 if like.is_complex() else 1)
        values = _C.cos(_C.arange(1, count + 1, dtype=_C.float64) * 12.9898) * 43758.5453
        values = values - _C.floor(values) + 0.1
        values = values / values.norm() if count else values
        if like.is_complex():
            return _C.complex(values[: like.numel()], values[like.numel() :]).reshape(like.shape).to(like.dtype)
        return values.reshape(like.shape).to(like.dtype)

    def gradient(self, part, x, seed):
        """The gradient of one real output, weighted by ``seed``; zeros where it does not depend on ``x``."""
        from . import grad

        (found,) = grad(part, x, seed, retain_graph=True, allow_unused=True)
        return _C.zeros_like(x) if found is None else found

    def close(self, found, wanted, scale=1.0):
        """Whether two derivatives agree."""
        return _C.allclose(found, wanted.to(found.dtype), self.rtol, self.atol * scale, equal_nan=True)

    # ---- backward

    def numerical(self, x):
        """For each part of each output, the matrix of its derivative: (directions of x, elements of the part)."""
        rows = None
        for direction in self.directions(x):
            parts = [[p.reshape(-1) for p in _parts(y)] for y in self.rates(x, direction)]
            rows = rows or [[[] for _ in p] for p in parts]
            for row, part in zip(rows, parts):
                for r, p in zip(row, part):
                    r.append(p)
        if rows is None:
            return [[_C.zeros((0, p.numel()), dtype=p.dtype) for p in _parts(y.detach())] for y in self.outputs]
        return [[_C.stack(r) for r in row] for row in rows]

    def analytical(self, part, x):
        """The same matrix from backward."""
        columns = []
        for position in range(part.numel()):
            seed = _C.zeros_like(part)
            seed[_unravel(position, part.shape)] = 1
            given = self.gradient(part, x, seed).reshape(-1)
            columns.append(_C.cat([_C.real(given), _C.imag(given)]) if given.is_complex() else given)
        count = x.numel() * (2 if x.is_complex() else 1)
        return _C.stack(columns, 1) if columns else _C.zeros((count, 0), dtype=_C.real(x.detach()).dtype)

    def mismatch(self, j, i, wanted, found, note=""):
        """The error."""
        return GradcheckError(
            f"Jacobian mismatch for output {j} with respect to input {i},\nnumerical:{wanted}\nanalytical:{found}\n{note}"
        )

    def check_slow(self, nondet_tol):
        """Whole matrices."""
        for i, x in enumerate(self.watched):
            numerical = self.numerical(x)
            for j, y in enumerate(self.outputs):
                for part, wanted in zip(_parts(y), numerical[j]):
                    found = self.analytical(part, x)
                    if not self.close(found, wanted):
                        raise self.mismatch(j, i, wanted, found)
                    self.check_repeats(found, self.analytical(part, x), nondet_tol)

    def check_repeats(self, first, second, nondet_tol):
        """Backward gives the same twice."""
        if first.numel() and not ((first - second).abs().nan_to_num().max() <= nondet_tol):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                "different values, although analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {nondet_tol}."
            )

    def check_fast(self, nondet_tol):
        """One direction of each input against one weighted sum of each output."""
        for i, x in enumerate(self.watched):
            direction = self.random_direction(x)
            rates = self.rates(x, direction)
            for j, (y, rate) in enumerate(zip(self.outputs, rates)):
                for part, change in zip(_parts(y), _parts(rate)):
                    seed = self.random_direction(part)
                    given = self.gradient(part, x, seed)
                    wanted, found = (change * seed).sum(), _C.real(given.conj() * direction).sum()
                    scale = float(direction.abs().sum() * seed.abs().sum())
                    if not self.close(found, wanted, scale):
                        numerical = self.numerical(x)[j][0]
                        note = (
                            "in fast mode: the derivative along one direction of one weighted sum. The whole matrices:\n"
                            f"numerical:{numerical}\nanalytical:{self.analytical(_parts(y)[0], x)}\n"
                        )
                        raise self.mismatch(j, i, wanted, found, note)
                    self.check_repeats(given, self.gradient(part, x, seed), nondet_tol)

    def check_constant(self):
        """A function none of whose results has a derivative must not change."""
        given = _tensors(self.func(*self.inputs))
        self.places = [place for place, y in enumerate(given) if _continuous(y)]
        for x in self.watched:
            for direction in self.directions(x):
                if any(bool((rate.abs() > self.atol).any()) for rate in self.rates(x, direction)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def check_scaling(self, grad_dtypes):
        """Gradients of zero are zero, and look like the inputs."""
        from . import grad

        seeds = [_C.zeros_like(y) for y in self.outputs]
        for x, found in zip(self.watched, grad(self.outputs, self.watched, seeds, retain_graph=True, allow_unused=True)):
            if found is None:
                continue
            if not bool((found == 0).all()):
                raise GradcheckError("backward not multiplied by grad_output")
            if found.shape != x.shape:
                raise GradcheckError("grad is incorrect size")
            if grad_dtypes and found.dtype != x.dtype:
                raise GradcheckError("grad is incorrect type")

    def check_undefined(self):
        """Backward takes outputs that no gradient reaches."""
        from . import grad

        def run(outputs):
            try:
                seeds = [_C.zeros_like(y) for y in outputs]
                found = grad(outputs, self.watched, seeds, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError("Expected backward function to handle undefined output grads.") from error
            if any(g is not None and not bool((g == 0).all()) for g in found):
                raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are")

        run([_Undefined.apply(y) for y in self.outputs])
        if len(self.outputs) > 1:
            for undefined in range(len(self.outputs)):
                run([_Undefined.apply(y) if at == undefined else y for at, y in enumerate(self.outputs)])

    def check_batched(self):
        """Many gradients at once are those of one at a time."""
        from . import grad

        for y in self.outputs:
            seeds = [self.random_direction(y), _C.ones_like(y)]
            single = [grad(y, self.watched, seed, retain_graph=True, allow_unused=True) for seed in seeds]
            try:
                many = grad(
                    y, self.watched, _C.stack(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True
                )  # fmt: skip
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            for i, whole in enumerate(many):
                if whole is not None and not self.close(whole, _C.stack([row[i] for row in single])):
                    raise GradcheckError(f"For output and input {i}, batched gradients differ from those taken one by one")

    # ---- forward

    def pushed(self, x, direction):
        """How each output changes along a direction of ``x``, by forward mode."""
        from . import forward_ad

        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(v, direction) if v is x else v for v in self.inputs]
            given = _tensors(self.func(*duals))
            found = []
            for place in self.places:
                primal, tangent = forward_ad.unpack_dual(given[place])
                found.append(_C.zeros_like(primal) if tangent is None else tangent.detach().clone())
        return [f.detach() for f in found]

    def check_forward(self, fast):
        """Forward mode against finite differences."""
        for i, x in enumerate(self.watched):
            for direction in [self.random_direction(x)] if fast else self.directions(x):
                wanted = self.rates(x, direction)
                try:
                    found = self.pushed(x, direction)
                except NotImplementedError as error:
                    raise GradcheckError(f"forward mode: {error}") from error
                scale = float(direction.abs().sum())
                for j, (f, w) in enumerate(zip(found, wanted)):
                    if not self.close(f, w, scale):
                        raise self.mismatch(j, i, w, f, "in forward mode\n")

    def at(self, x, value):
        """The outputs with another value in the place of ``x``."""
        given = _tensors(self.func(*[value if v is x else v for v in self.inputs]))
        return tuple(given[place] for place in self.places)

    def check_batched_forward(self):
        """Many tangents at once are those of one at a time."""
        from ..func import jvp, vmap

        for i, x in enumerate(self.watched):
            tangents = [self.random_direction(x), _C.ones_like(x).detach()]
            single = [self.pushed(x, t) for t in tangents]
            try:
                many = vmap(lambda t, x=x: jvp(lambda v: self.at(x, v), (x.detach(),), (t,))[1])(_C.stack(tangents))
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched forward derivatives, got: {error}") from error
            for j, whole in enumerate(many):
                if not self.close(whole, _C.stack([row[j] for row in single])):
                    raise GradcheckError(
                        f"For output {j} and input {i}, batched forward derivatives differ from those taken one by one"
                    )


class _Undefined(Function):
    """The same tensor; no gradient passes."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return None


def _random_like(y):
    if y.is_complex():
        part = _C.real(y.detach()).dtype
        return _C.complex(_C.randn(y.shape, dtype=part), _C.randn(y.shape, dtype=part))
    return _C.randn(y.shape, dtype=y.dtype)


def _check_inputs(inputs):
    watched = _differentiable(inputs)
    if not watched:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        if x.dtype not in (_C.float64, _C.complex128):
            warn(
                f"gradcheck: input {i} has {x.dtype}, which is not a double precision floating point: the check will "
                "likely fail",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping "
                "to be able to compute the numerical gradients correctly. You should call .contiguous on the input "
                "before passing it to gradcheck."
            )


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
    check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
    check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Whether the derivatives of ``func(*inputs)`` agree with central differences of width ``eps``.

    For every input that requires grad, which should be float64 or complex128, and every output: whole Jacobians, or with
    ``fast_mode`` the derivative along one direction. Complex results are compared by real and imaginary part, complex
    inputs by PyTorch's convention (a gradient is that of a real loss, conjugate). Further: backward twice gives the same
    within ``nondet_tol``; gradients of zero are zero; backward takes outputs without a gradient
    (``check_undefined_grad``); forward mode agrees (``check_forward_ad``); many gradients or tangents at once agree with
    one at a time (``check_batched_grad``, ``check_batched_forward_grad``). ``masked`` is about sparse inputs, which
    flambeau has not. A disagreement is a :class:`GradcheckError`, or False without ``raise_exception``.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    _check_inputs(inputs)
    try:
        check = _Check(func, inputs, eps, atol, rtol)
        if not check.outputs:
            check.check_constant()
            return True
        check.find_places()
        if check_forward_ad:
            check.check_forward(fast_mode)
            if check_batched_forward_grad:
                check.check_batched_forward()
        if check_backward_ad:
            (check.check_fast if fast_mode else check.check_slow)(nondet_tol)
            if check_batched_grad:
                check.check_batched()
            check.check_scaling(check_grad_dtypes)
            if check_undefined_grad:
                check.check_undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
    raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
    check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False,
):  # fmt: skip
    """Whether second derivatives agree with finite differences of the first, at random or given ``grad_outputs``.

    ``check_fwd_over_rev`` takes the second derivative in forward mode, ``check_rev_over_rev`` in backward.
    """
    from . import grad

    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        seeds = [_random_like(y) for y in outputs]
        if gen_non_contig_grad_outputs:
            seeds = [_C.stack([s, s], -1)[..., 0] for s in seeds]
        grad_outputs = tuple([s.requires_grad_() for s in seeds])
    else:
        grad_outputs = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)

    watched = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def first(*arguments):
        given, seeds = arguments[: -len(grad_outputs)], arguments[-len(grad_outputs) :]
        with enable_grad():  # also where the values alone are asked for
            outputs = _differentiable(func(*given))
            found = grad(outputs, [given[i] for i in watched], seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip
