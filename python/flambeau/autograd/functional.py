"""Derivatives of functions of tensors, in the tensors' own graph: `jacobian`, `hessian`, and products with them."""

from .. import _C
from .._grad_mode import enable_grad
from .._tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple_of(values, name, function):
    """The values as a tuple, and whether they were one; tensors all of them."""
    several = isinstance(values, (tuple, list))
    values = tuple(values) if several else (values,)
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            where = f"Value at index {i} has type {type(value)}" if several else f"got {type(value)}"
            raise TypeError(
                f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but {where}."
            )
    return several, values


def _fresh(inputs, create_graph):
    """The inputs as leaves, or views of them where the graph goes on."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs
    )


def _checked_v(v, other, function, of_output):
    if v is None:
        if len(other) != 1 or other[0].numel() != 1:
            what = "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            if not of_output:
                what = "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            raise RuntimeError(what)
        return (other[0].new_ones(other[0].shape),)
    _, v = _tuple_of(v, "v", function)
    if len(v) != len(other):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, other)):
        if a.shape != b.shape:
            where = f"Entry {i} in " if len(v) > 1 else ""
            raise RuntimeError(f"{where}v has invalid size: should be {b.shape} but got {a.shape}.")
    return v


def _grad(outputs, inputs, seeds=None, create_graph=False):
    """Gradients, None where there are none, of those outputs that require any."""
    seeds = (None,) * len(outputs) if seeds is None else seeds
    pairs = [(y, g) for y, g in zip(outputs, seeds) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    ys, gs = zip(*pairs)
    from . import grad

    return grad(ys, inputs, gs, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _filled(grads, like, strict, create_graph, what):
    """Zeros in the place of missing gradients, or an error where ``strict``."""
    made = []
    for i, (g, x) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(
                    f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
                )
            g = x.new_zeros(x.shape)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict "
                "mode when create_graph=True."
            )
        made.append(g)
    return tuple(made)


def _done(values, several, create_graph):
    values = values if create_graph else tuple(x.detach() for x in values)
    return values if several else values[0]


def _check_outputs(outputs, strict):
    if strict:
        for i, y in enumerate(outputs):
            if not y.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                    "a differentiable manner from the input when running in strict mode."
                )


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of ``func`` at ``inputs``, and the product of ``v`` with its Jacobian.

    ``v`` has the shapes of the value; it may be left out for a value of one element. Returns ``(value, product)``,
    the product with a tensor for each input.
    """
    with enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph)
        out_several, outputs = _tuple_of(func(*inputs), "outputs of the user-provided function", "vjp")
        _check_outputs(outputs, strict)
        v = _checked_v(v, outputs, "vjp", True)
    with _mode(create_graph):
        grads = _filled(_grad(outputs, inputs, v, create_graph), inputs, strict, create_graph, "vjp")
    return _done(outputs, out_several, create_graph), _done(grads, several, create_graph)


def _mode(create_graph):
    from .._grad_mode import set_grad_enabled

    return set_grad_enabled(create_graph or _C.is_grad_enabled())


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of ``func`` at ``inputs``, and the product of its Jacobian with ``v``, which has the shapes of the inputs.

    Returns ``(value, product)``, the product with a tensor for each result.
    """
    with enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "jvp")
        v = _checked_v(v, inputs, "jvp", False)
        inputs = _fresh(inputs, create_graph)
        out_several, outputs = _tuple_of(func(*inputs), "outputs of the user-provided function", "jvp")
        _check_outputs(outputs, strict)
        # The derivative of the vjp, which is linear in its vector.
        seeds = tuple(y.new_zeros(y.shape).requires_grad_() for y in outputs)
        grads = _filled(_grad(outputs, inputs, seeds, True), inputs, strict, False, "jvp")
        slopes = _filled(_grad(grads, seeds, v, create_graph), outputs, strict, create_graph, "jvp")
    return _done(outputs, out_several, create_graph), _done(slopes, out_several, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """Derivatives of every result of ``func`` in every input, of shape (result's shape, input's shape).

    A tensor; nested in tuples where there are several results, or several inputs. ``vectorize`` computes all rows at once
    (with :func:`vmap`), in ``strategy`` ``"reverse-mode"`` or ``"forward-mode"``.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        return _jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph)
        out_several, outputs = _tuple_of(func(*inputs), "outputs of the user-provided function", "jacobian")
        _check_outputs(outputs, strict)
        rows = _rows_at_once if vectorize else _rows
        found = [rows(y, inputs, create_graph, strict) for y in outputs]
    made = tuple(_done(of_y, several, create_graph) for of_y in found)
    return made if out_several else made[0]


def _rows(y, inputs, create_graph, strict):
    """The Jacobian of one result, row by row."""
    from .. import stack

    rows = []
    for i in range(y.numel()):
        seed = y.new_zeros(y.numel())
        seed[i] = 1
        rows.append(_filled(_grad((y,), inputs, (seed.view(y.shape),), create_graph), inputs, strict, create_graph, "jacobian"))
    if not rows:
        return tuple(x.new_zeros((*y.shape, *x.shape)) for x in inputs)
    return tuple(stack(column).view(*y.shape, *x.shape) for column, x in zip(zip(*rows), inputs))


def _rows_at_once(y, inputs, create_graph, strict):
    """The Jacobian of one result, all rows as a batch."""
    from ..func import vmap

    if not y.requires_grad or y.numel() == 0:
        return tuple(x.new_zeros((*y.shape, *x.shape)) for x in inputs)
    basis = y.new_zeros((y.numel(), y.numel()))
    basis.diagonal().fill_(1)
    rows = vmap(lambda seed: _filled(_grad((y,), inputs, (seed,), create_graph), inputs, False, create_graph, "jacobian"))
    found = rows(basis.view(y.numel(), *y.shape))
    return tuple(j.reshape(*y.shape, *x.shape) for j, x in zip(found, inputs))


def _jacobian_forward(func, inputs, create_graph, strict, vectorize):
    """The Jacobian in forward mode, a column for each element of the inputs."""
    if strict:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `strict=True` and `strategy=\"forward-mode\"` are not supported together (yet)."
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        )
    from ..func import jacfwd

    several, inputs = _tuple_of(inputs, "inputs", "jacobian")
    inputs = _fresh(inputs, create_graph) if create_graph else tuple(x.detach() for x in inputs)
    out_several = {}

    def checked(*xs):
        out_several["was"], outputs = _tuple_of(func(*xs), "outputs of the user-provided function", "jacobian")
        return outputs

    found = jacfwd(checked, tuple(range(len(inputs))))(*inputs)
    made = tuple(_done(of_y, several, create_graph) for of_y in found)
    return made if out_several["was"] else made[0]


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Second derivatives of ``func``, whose value is a tensor of one element, in every pair of elements of the inputs.

    A tensor of shape (input's shape, input's shape); for several inputs a tuple of tuples of them.
    """
    several, inputs = _tuple_of(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs):
        value = func(*xs)
        _, (y, *more) = _tuple_of(value, "outputs of the user-provided function", "hessian")
        if more or isinstance(value, (tuple, list)):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if y.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return y.reshape(())

    def gradients(*xs):
        if outer_jacobian_strategy == "forward-mode":
            from ..func import grad

            return grad(scalar, tuple(range(len(xs))))(*xs)
        found = jacobian(scalar, xs, create_graph=True)
        if strict:
            for i, g in enumerate(found):
                if not g.requires_grad:
                    raise RuntimeError(
                        f"The jacobian of the user-provided function with respect to input {i} is independent of the input. "
                        "This is not allowed in strict mode."
                    )
        return found

    made = jacobian(gradients, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return made if several else made[0][0]


def _gradient(func, inputs, strict, function):
    """The value of ``func`` and its gradients, recorded."""
    out_several, outputs = _tuple_of(func(*inputs), "outputs of the user-provided function", function)
    if out_several or len(outputs) != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    _check_outputs(outputs, strict)
    return outputs[0], _filled(_grad(outputs, inputs, None, True), inputs, strict, True, "jacobian")


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of ``func`` (a tensor of one element) and the product of ``v`` with its matrix of second derivatives."""
    with enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "vhp")
        v = _checked_v(v, inputs, "vhp", False)
        inputs = _fresh(inputs, create_graph)
        value, grads = _gradient(func, inputs, strict, "vhp")
        made = _filled(_grad(grads, inputs, v, create_graph), inputs, strict, create_graph, "vhp")
    return _done((value,), False, create_graph), _done(made, several, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The value of ``func`` (a tensor of one element) and the product of its matrix of second derivatives with ``v``."""
    with enable_grad():
        several, inputs = _tuple_of(inputs, "inputs", "hvp")
        v = _checked_v(v, inputs, "hvp", False)
        inputs = _fresh(inputs, create_graph)
        value, grads = _gradient(func, inputs, strict, "hvp")
        seeds = tuple(x.new_zeros(x.shape).requires_grad_() for x in inputs)
        twice = _filled(_grad(grads, inputs, seeds, True), inputs, strict, False, "hvp")
        made = _filled(_grad(twice, seeds, v, create_graph), inputs, strict, create_graph, "hvp")
    return _done((value,), False, create_graph), _done(made, several, create_graph)
