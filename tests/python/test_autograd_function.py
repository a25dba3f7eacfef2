"""autograd.grad and backward, functions with derivatives of their own, gradcheck."""

import pytest

import flambeau as torch
from flambeau.autograd import Function, grad, gradcheck, gradgradcheck
from flambeau.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3 * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * ctx.factor * g, None


class Exp(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_custom_functions_and_their_second_derivatives():
    x = leaf(0.5, -1.0, 2.0)
    y = Cube.apply(x, 2.0)
    (first,) = grad(y.sum(), x, create_graph=True)
    assert torch.allclose(first, 6 * x * x)
    (second,) = grad(first.sum(), x)
    assert torch.allclose(second, 12 * x)
    for function in (lambda x: Cube.apply(x, 2.0), Exp.apply):
        assert gradcheck(function, x) and gradgradcheck(function, x)


def test_node_is_named_after_the_function():
    y = Cube.apply(leaf(1.0), 2.0)
    assert type(y.grad_fn).__name__ == "CubeBackward" and y.grad_fn.factor == 2.0
    assert y.requires_grad and not y.is_leaf


def test_unrecorded_call():
    with torch.no_grad():
        assert Cube.apply(leaf(1.0), 2.0).grad_fn is None
    assert not Cube.apply(torch.ones(1), 2.0).requires_grad


def test_needs_input_grad():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            a, b = ctx.saved_tensors
            return (g * b if ctx.needs_input_grad[0] else None), (g * a if ctx.needs_input_grad[1] else None)

    a, b = leaf(3.0), torch.tensor([2.0], dtype=torch.float64)
    Product.apply(a, b).backward()
    assert a.grad.item() == 2.0 and seen == [(True, False)]


def test_several_outputs_and_materialised_gradients():
    seen = []

    def make(materialize):
        class Two(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                seen.append(b)
                return a * 2

        return Two

    x = leaf(1.0)
    make(True).apply(x)[0].backward()
    make(False).apply(x)[0].backward()
    assert seen[0].tolist() == [0.0] and seen[1] is None and x.grad.item() == 4.0


def test_in_place_function():
    class DoubleIt(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    y = x * 1
    z = DoubleIt.apply(y)
    assert z is y
    y.backward()
    assert x.grad.item() == 2.0


def test_non_differentiable_output():
    class WithIndex(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * 2, index

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    x = leaf(1.0, 3.0)
    y, index = WithIndex.apply(x)
    assert not index.requires_grad and index.item() == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_returned_input_is_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.item() == 7.0


def test_changed_saved_tensor_is_an_error():
    x = leaf(1.0)
    y = x * 1
    z = Cube.apply(y, 1.0)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_wrong_number_of_gradients():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g, g

    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Wrong.apply(leaf(1.0)).backward()


def test_an_exception_in_backward_comes_through():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(leaf(1.0)).backward()


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3.0)
    (first,) = grad(Once.apply(x) * x, x, create_graph=True)
    assert first.item() == 27.0
    with pytest.raises(RuntimeError, match="differentiate twice"):
        first.backward()


def test_instances_are_refused():
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Cube()
    with pytest.raises(NotImplementedError):
        Function.apply(leaf(1.0))


def test_grad():
    x, y = leaf(1.0, 2.0), leaf(3.0)
    out = (x * x).sum()
    assert grad(out, x, retain_graph=True)[0].tolist() == [2.0, 4.0] and x.grad is None
    assert grad(out, (x, y), retain_graph=True, allow_unused=True)[1] is None
    assert grad(out, (x, y), retain_graph=True, materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad(out, (x, y), retain_graph=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        grad(out, x, torch.ones(3, dtype=torch.float64), retain_graph=True)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        grad(x * x, x)
    (weighted,) = grad(x * x, x, torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert weighted.tolist() == [2.0, 40.0]


def test_backward_of_several_and_with_inputs():
    x, y = leaf(2.0), leaf(3.0)
    torch.autograd.backward([x * y, x], inputs=[x])
    assert x.grad.item() == 4.0 and y.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        torch.autograd.backward(x * y, inputs=[])


def test_gradcheck_finds_wrong_derivatives():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, leaf(1.0, 2.0))
    assert not gradcheck(Wrong.apply, leaf(1.0), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(Wrong.apply, torch.ones(2))


def test_grad_modes():
    x = leaf(1.0)

    @torch.no_grad()
    def plain(v):
        return v * 2

    @torch.no_grad
    def bare(v):
        return v * 2

    @torch.no_grad()
    def steps(v):
        for _ in range(2):
            yield (v * 2).requires_grad, torch.is_grad_enabled()

    assert not plain(x).requires_grad and not bare(x).requires_grad and plain.__name__ == "plain"
    assert list(steps(x)) == [(False, False)] * 2 and torch.is_grad_enabled()
    with torch.no_grad():
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)
    with pytest.raises(ZeroDivisionError):
        with torch.no_grad():
            raise ZeroDivisionError
    assert torch.is_grad_enabled()
