"""Derivatives held against finite differences."""

from .. import _C
from .._tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative disagrees with finite differences."""


def _tensors(values):
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [x for x in values if isinstance(x, Tensor)]


def _differentiable(values):
    return [x for x in _tensors(values) if x.requires_grad]


def _numerical(function, inputs, x, outputs, places, eps):
    """One Jacobian an output, of shape (elements of x, elements of the output), by central differences.

    ``places`` are the numbers of ``outputs`` among all tensors that the function gives.
    """
    rows = [[] for _ in outputs]
    flat = (
        x.data
    )  # not detach(): the version must stay, as tensors saved by the graph are put back before they are used
    for position in range(x.numel()):
        at = _unravel(position, x.shape)
        kept = flat[at].item()
        ends = []
        for shifted in (kept + eps, kept - eps):
            flat[at] = shifted
            ends.append([y.detach().clone() for y in _tensors(function(*inputs))])
        flat[at] = kept
        for row, place in zip(rows, places):
            row.append(((ends[0][place] - ends[1][place]) / (2 * eps)).reshape(-1))
    return [_C.stack(row) if row else _C.zeros((0, y.numel()), dtype=y.dtype) for row, y in zip(rows, outputs)]


def _unravel(position, shape):
    at = []
    for size in reversed(shape):
        at.append(position % size)
        position //= size
    return tuple(reversed(at))


def _analytical(y, x):
    """The Jacobian of ``y`` by ``x`` from backward, one row of it at a time."""
    from . import grad

    rows = []
    for position in range(y.numel()):
        seed = _C.zeros_like(y)
        seed[_unravel(position, y.shape)] = 1
        (given,) = grad(y, x, seed, retain_graph=True, allow_unused=True)
        rows.append(_C.zeros_like(x).reshape(-1) if given is None else given.reshape(-1))
    return _C.stack(rows, 1) if rows else _C.zeros((x.numel(), 0), dtype=x.dtype)


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
    check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
    check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Whether the gradients of ``func(*inputs)`` agree with central differences of width ``eps``.

    For every input that requires grad, which should be float64, and every output: a whole Jacobian each.
    ``fast_mode`` and the checks of undefined gradients are accepted; what is always done is the full comparison.
    """
    for name, asked in (
        ("check_batched_grad", check_batched_grad), ("check_forward_ad", check_forward_ad),
        ("check_batched_forward_grad", check_batched_forward_grad),
    ):  # fmt: skip
        if asked:
            raise NotImplementedError(f"gradcheck with {name}=True is not supported by flambeau yet")
    try:
        _check(func, inputs if isinstance(inputs, (tuple, list)) else (inputs,), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol):
    watched = _differentiable(inputs)
    if not watched:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for x in watched:
        if x.is_complex():
            raise NotImplementedError("gradcheck of complex inputs is not supported by flambeau yet")
        if x.dtype not in (_C.float64,):
            from warnings import warn

            warn(
                f"gradcheck: an input has {x.dtype}, which is not a double precision floating point: "
                "the check will likely fail",
                stacklevel=3,
            )
    everything = _tensors(func(*inputs))
    places = [place for place, y in enumerate(everything) if y.requires_grad]
    outputs = [everything[place] for place in places]
    if not outputs:
        raise GradcheckError("gradcheck: none of the outputs requires grad, so there is no derivative to check")
    for i, x in enumerate(watched):
        numerical = _numerical(func, inputs, x, outputs, places, eps)
        for j, (y, wanted) in enumerate(zip(outputs, numerical)):
            found = _analytical(y, x)
            if not _C.allclose(found, wanted.to(found.dtype), rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {j} with respect to input {i},\nnumerical:{wanted}\n"
                    f"analytical:{found}\n"
                )
            if not _C.allclose(found, _analytical(y, x), 0, nondet_tol, equal_nan=True):
                raise GradcheckError(f"Backward is not reentrant: output {j}, input {i} gave two different gradients")


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
    raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
    check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False,
):  # fmt: skip
    """Whether second derivatives agree with finite differences of the first, at random or given ``grad_outputs``."""
    from . import grad

    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        grad_outputs = tuple([_C.randn(y.shape, dtype=y.dtype).requires_grad_() for y in outputs])
    else:
        grad_outputs = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)

    def first(*arguments):
        given, seeds = arguments[: -len(grad_outputs)], arguments[-len(grad_outputs) :]
        outputs = _differentiable(func(*given))
        return grad(outputs, _differentiable(given), seeds, create_graph=True, allow_unused=True)

    return gradcheck(
        first, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )  # fmt: skip
