"""Derivatives of functions: each transform is a level of its own (`_C._Level`), so they nest."""

from functools import wraps

from .. import _C
from .._grad_mode import enable_grad
from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from ._trees import chosen, map_tensors, replaced, tensors_of
from ._vmap import vmap


class _Differentiating:
    """A level that differentiates, as a context."""

    def __enter__(self):
        self.level = _C._Level()
        return self.level

    def __exit__(self, *error):
        self.level.exit()


def _with_aux(name, output, has_aux):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{name}(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def vjp(func, *primals, has_aux=False):
    """The value of a function, and the function that takes gradients of the value to gradients of the arguments.

    Returns ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)`` where ``func`` returns ``(output, aux)`` and ``has_aux``
    is set. Arguments and results may be nested; all of them tensors.

    >>> import flambeau as torch
    >>> output, vjp_fn = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> vjp_fn(torch.ones(2))
    (tensor([1., 1.]),)
    """
    primals_out, pull, aux = _vjp(func, primals, has_aux)

    def vjp_fn(*cotangents, retain_graph=True, create_graph=None):
        if len(cotangents) == 1 and not (isinstance(primals_out, tuple) and len(primals_out) == 1):
            cotangents = cotangents[0]
        return pull(cotangents)

    return (primals_out, vjp_fn, aux) if has_aux else (primals_out, vjp_fn)


def _vjp(func, primals, has_aux=False):
    """The value of ``func(*primals)``, what takes its gradients to those of the tuple of primals, and the second result."""
    with _Differentiating() as level, enable_grad():
        leaves, spec = tree_flatten(primals)
        inside = [level.wrap(x).requires_grad_() if _differentiable(x) else x for x in leaves]
        output, aux = _with_aux("vjp", func(*tree_unflatten(inside, spec)), has_aux)
        outputs, out_spec = tensors_of(
            output, "vjp(f, *primals): Expected f(*primals) to return only tensors"
        )
        primals_out = tree_unflatten([level.unwrap(x) for x in outputs], out_spec)
        aux = map_tensors(level.unwrap, aux)
        inputs = [x for x in inside if isinstance(x, Tensor) and level.owns(x)]
        recorded = [level.owns(y) and y.requires_grad for y in outputs]

    def pull(cotangents):
        seeds, seed_spec = tree_flatten(cotangents)
        if seed_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {seed_spec}, primal output: {out_spec}"
            )
        roots = [(y, seed) for y, seed, has in zip(outputs, seeds, recorded) if has]
        grads = {id(x): grad for x, grad in zip(inputs, _gradients(roots, inputs))}
        return tree_unflatten([grads.get(id(x)) for x in inside], spec)

    return primals_out, pull, aux


def _differentiable(x):
    return isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)


def _gradients(roots, inputs):
    """Gradients of the inputs for those of the roots; zeros where there is no way from one to the other."""
    if not roots or not inputs:
        return [_zeros_of(x) for x in inputs]
    outputs, seeds = zip(*roots)
    # The level has ended: what is enabled here is what the levels around it record.
    found = _C._autograd_backward(outputs, seeds, True, _C.is_grad_enabled(), tuple(inputs), True, False)
    return [_zeros_of(x) if grad is None else grad for x, grad in zip(inputs, found)]


def _zeros_of(x):
    _, below, _ = _C._wrapped(x)
    return below.new_zeros(()).expand(below.shape).clone()


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the gradient of ``func`` (whose value is a tensor of one element) and the value.

    ``argnums`` names the argument (or, as a tuple, the arguments) that the gradient is of. With ``has_aux``, ``func``
    returns ``(value, aux)``, and the new function ``(gradient, (value, aux))``.
    """

    @wraps(func)
    def wrapper(*args, **kwargs):
        numbers, primals, several = chosen(args, argnums, "grad")

        def of_chosen(*values):
            values = values if several else values[0]
            output = func(*replaced(args, numbers, values, several), **kwargs)
            value = _with_aux("grad", output, has_aux)[0]
            if not isinstance(value, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}")
            if value.dim() != 0:
                raise RuntimeError(
                    "Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            return output

        tensors_of(primals, "grad: Expected the arguments that argnums names to be tensors")
        value, pull, aux = _vjp(of_chosen, primals if several else (primals,), has_aux)
        grads = pull(value.new_ones(()))
        grads = grads if several else grads[0]
        return (grads, (value, aux)) if has_aux else (grads, value)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of ``func``, whose value is a tensor of one element.

    With ``has_aux``, ``func`` returns ``(value, aux)``, and the new function ``(gradient, aux)``.

    >>> import flambeau as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
    tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of a function, and its derivative along tangents of the arguments.

    ``primals`` and ``tangents`` are tuples of one structure. Returns ``(output, tangent of output)``, and ``aux`` as
    third where ``func`` returns ``(output, aux)`` and ``has_aux`` is set.

    >>> import flambeau as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func, primals, tangents, argnums=None, strict=False, has_aux=False):
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    if not primals:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be non-empty")
    xs, spec = tensors_of(primals, "jvp(f, primals, tangents): Expected all primals to be tensors")
    ts, t_spec = tensors_of(tangents, "jvp(f, primals, tangents): Expected all tangents to be tensors")
    if spec != t_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if "
            "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {t_spec}"
        )
    with _Differentiating() as level:
        inside = []
        for x, t in zip(xs, ts):
            x = level.wrap(x)
            _C._set_tangent(x, t)
            inside.append(x)
        output, aux = _with_aux("jvp", func(*tree_unflatten(inside, spec)), has_aux)
        outputs, out_spec = tensors_of(output, "jvp(f, primals, tangents): Expected f(*primals) to return only tensors")
        values, slopes = [], []
        for y in outputs:
            value = level.unwrap(y)
            slope = _C._tangent(y) if level.owns(y) else None
            if slope is None:
                if strict:
                    raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs.")
                slope = value.new_zeros(value.shape)
            values.append(value)
            slopes.append(slope)
        result = tree_unflatten(values, out_spec), tree_unflatten(slopes, out_spec)
        return (*result, map_tensors(level.unwrap, aux)) if has_aux else result


def _basis(tensors):
    """Standard basis vectors of the space of all elements of the tensors, a chunk for each tensor, along dimension 0."""
    total = sum(t.numel() for t in tensors)
    chunks, start = [], 0
    for t in tensors:
        chunk = t.new_zeros((total, t.numel()))
        chunk.diagonal(-start).fill_(1)
        chunks.append(chunk.view(total, *t.shape))
        start += t.numel()
    return chunks, total


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that returns the derivatives of every result in every argument, in reverse mode.

    They are of shape (result's shape, argument's shape), nested as the results are, and in each as the arguments.
    ``chunk_size`` rows are computed at a time.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def wrapper(*args, **kwargs):
        numbers, primals, several = chosen(args, argnums, "jacrev")

        def of_chosen(*values):
            return func(*replaced(args, numbers, values if several else values[0], several), **kwargs)

        output, pull, aux = _vjp(of_chosen, primals if several else (primals,), has_aux)
        outputs, out_spec = tensors_of(output, "jacrev: Expected f(*args) to return only tensors")
        if any(y.dtype.is_complex for y in outputs):
            raise RuntimeError("jacrev: Expected all outputs to be real but received complex tensor")
        chunks, total = _basis(outputs)
        rows = vmap(lambda *seeds: pull(tree_unflatten(list(seeds), out_spec)), chunk_size=chunk_size)(*chunks)
        inputs, in_spec = tree_flatten(rows if several else rows[0])
        jacobians, start = [], 0
        for y in outputs:
            of_y = [x[start : start + y.numel()].reshape(*y.shape, *x.shape[1:]) for x in inputs]
            jacobians.append(tree_unflatten(of_y, in_spec))
            start += y.numel()
        result = tree_unflatten(jacobians, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that returns the derivatives of every result in every argument, in forward mode.

    They are of shape (result's shape, argument's shape), nested as the results are, and in each as the arguments.
    """

    @wraps(func)
    def wrapper(*args, **kwargs):
        numbers, primals, several = chosen(args, argnums, "jacfwd")
        xs, spec = tensors_of(primals, "jacfwd: Expected the arguments that argnums names to be tensors")
        if any(x.dtype.is_complex for x in xs):
            raise RuntimeError("jacfwd: Expected all inputs to be real but received complex tensor")
        chunks, total = _basis(xs)
        found = {}

        def of_chosen(*flat):
            values = tree_unflatten(list(flat), spec)
            return func(*replaced(args, numbers, values, several), **kwargs)

        def push(*tangents):
            result = _jvp(of_chosen, tuple(xs), tangents, has_aux=has_aux)
            found["aux"] = result[2] if has_aux else None
            return result[1]

        columns = vmap(push, randomness=randomness)(*chunks)
        outputs, out_spec = tree_flatten(columns)
        jacobians = []
        for y in outputs:
            of_y, start = [], 0
            for x in xs:
                part = y[start : start + x.numel()].movedim(0, -1)
                of_y.append(part.reshape(*y.shape[1:], *x.shape))
                start += x.numel()
            jacobians.append(tree_unflatten(of_y, spec))
        result = tree_unflatten(jacobians, out_spec)
        return (result, map_tensors(_unbatched, found["aux"])) if has_aux else result

    return wrapper


def _unbatched(x):
    """A second result, which is the same for all columns."""
    while (wrapped := _C._wrapped(x)) is not None:
        x = wrapped[1][0] if wrapped[2] else wrapped[1]
    return x


def hessian(func, argnums=0):
    """A function that returns the second derivatives of ``func``: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """The value of a function at ``primals``, and the linear function that takes tangents to its derivative along them."""
    output = func(*primals)

    def jvp_fn(*tangents):
        return _jvp(func, primals, tangents)[1]

    return output, jvp_fn


def functionalize(func, *, remove="mutations"):
    """``func``: flambeau's transforms see operations in place as they see any other, so there is nothing to take away."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid options are: "
            f"     remove='mutations', remove='mutations_and_views'. Got {remove!r}"
        )
    return func
