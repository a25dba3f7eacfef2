"""Backward, hooks, modes and custom functions from Python."""

import gc
import weakref

import flambeau as torch
import pytest
from flambeau.autograd import Function, grad
from flambeau.autograd.function import once_differentiable


def leaf(*values):
    return torch.tensor([float(v) for v in values], requires_grad=True)


def ones(n):
    return torch.tensor([1.0] * n)


def test_backward_accumulates():
    x = leaf(1, 2)
    (x * x).backward(ones(2))
    assert x.grad.tolist() == [2.0, 4.0]
    held = x.grad
    (x * x).backward(ones(2))
    assert x.grad is held and held.tolist() == [4.0, 8.0]
    x.grad = None
    (x * 3).backward(ones(2))
    assert x.grad.tolist() == [3.0, 3.0]


def test_retain_and_create_graph():
    x = leaf(2)
    y = x * x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0]
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    (g,) = grad(x * x * x, x, create_graph=True)
    (gg,) = grad(g, x)
    assert g.tolist() == [12.0] and gg.tolist() == [12.0]


def test_grad_of_unused_inputs():
    x, y = leaf(1), leaf(1)
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(x * 2, [x, y])
    assert grad(x * 2, [x, y], allow_unused=True)[1] is None
    assert x.grad is None
    assert grad(x * 2, [x, y], materialize_grads=True)[1].tolist() == [0.0]


def test_inputs_of_backward():
    x, y = leaf(2), leaf(3)
    (x * y).backward(inputs=[x])
    assert x.grad.tolist() == [3.0] and y.grad is None


def test_errors():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.tensor([1.0]).backward()
    with pytest.raises(RuntimeError, match="shape"):
        (x * 2).backward(ones(3))
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf variables"):
        (x * 2).requires_grad_(False)
    y = x * x
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(ones(2))


def test_modes():
    x = leaf(1)
    with torch.no_grad():
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def f(t):
        return t * 2

    assert not f(x).requires_grad and (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
        assert y.is_inference()
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        y.add_(1)
    with pytest.raises(ValueError):
        with torch.no_grad():
            raise ValueError
    assert torch.is_grad_enabled()


def test_graph_is_visible():
    x = leaf(1)
    y = (x * 2).neg()
    assert y.grad_fn.name() == "NegBackward0" and x.grad_fn is None and x.is_leaf and not y.is_leaf
    (mul, number), = y.grad_fn.next_functions
    assert mul.name() == "MulBackward0" and number == 0
    accumulate = mul.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x
    assert "NegBackward0" in repr(y.grad_fn)


def test_node_survives_its_tensor():
    y = leaf(1) * 2
    node = y.grad_fn
    del y
    gc.collect()
    assert node.name() == "MulBackward0" and node.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def test_tensor_hooks():
    x = leaf(1, 2)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.backward(ones(2), retain_graph=True)
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [21.0, 21.0]
    handle.remove()
    handle.remove()
    y.backward(ones(2))
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.tensor([1.0]).register_hook(print)


def test_hook_mistakes_are_raised_as_they_were():
    class Mine(Exception):
        pass

    def fail(g):
        raise Mine("from the hook")

    y = leaf(1) * 2
    y.register_hook(fail)
    with pytest.raises(Mine, match="from the hook") as raised:
        y.backward()
    assert any(entry.name == "fail" for entry in raised.traceback)
    y = leaf(1) * 2
    y.register_hook(lambda g: 3)
    with pytest.raises((TypeError, RuntimeError)):
        y.backward()


def test_post_accumulate_hooks():
    x = leaf(1)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 2).backward()
    assert seen == [(True, [2.0])]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_node_hooks():
    x = leaf(1)
    y = x * 3
    order = []
    y.grad_fn.register_prehook(lambda grads: order.append("before") or (grads[0] * 2,))
    handle = y.grad_fn.register_hook(lambda made, given: order.append(("after", made[0].tolist(), given[0].tolist())))
    y.backward(retain_graph=True)
    assert order == ["before", ("after", [6.0], [2.0])] and x.grad.tolist() == [6.0]
    handle.remove()
    y.backward()
    assert len(order) == 3


def test_retain_grad():
    x = leaf(1)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    (y * y).backward()
    assert y.grad.tolist() == [4.0] and y.retains_grad


def test_detach_in_place():
    y = leaf(1) * 2
    assert y.detach_() is y and not y.requires_grad and y.grad_fn is None and y.is_leaf


def test_long_chains_run_and_are_freed():
    x = leaf(1)
    y = x
    for _ in range(200_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


# ---- custom functions


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return g * x * x * 3 * ctx.scale, None


def test_custom_function():
    x = leaf(2)
    y = Cube.apply(x, 5)
    assert y.tolist() == [40.0] and y.grad_fn.name() == "CubeBackward" and y.grad_fn.scale == 5
    y.backward()
    assert x.grad.tolist() == [60.0]
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_second_derivative_of_a_custom_function():
    x = leaf(2)
    (g,) = grad(Cube.apply(x, 1), x, create_graph=True)
    (gg,) = grad(g, x)
    assert g.tolist() == [12.0] and gg.tolist() == [12.0]


def test_setup_context():
    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert y.tolist() == [9.0]
            return 2 * x * g

    x = leaf(3)
    Square.apply(x).backward()
    assert x.grad.tolist() == [6.0]


def test_several_outputs_and_missing_gradients():
    given = []

    class Both(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            given.append(None if b is None else b.tolist())
            return a * 2, None

    x = leaf(1)
    Both.apply(x, True)[0].backward()
    Both.apply(x, False)[0].backward()
    assert given == [[0.0], None] and x.grad.tolist() == [4.0]


def test_non_differentiable_and_dirty():
    class Mark(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(y)
            flag = x > 0
            ctx.mark_non_differentiable(flag)
            y.add_(x)
            return y, flag

        @staticmethod
        def backward(ctx, g, _):
            return g * 10, g

    x, base = leaf(1), leaf(5)
    y = base * 1
    out, flag = Mark.apply(x, y)
    assert out is y and not flag.requires_grad and out.tolist() == [6.0]
    out.backward()
    assert x.grad.tolist() == [10.0] and base.grad.tolist() == [1.0]


def test_identity_function_returns_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.backward()
    assert x.grad.tolist() == [2.0]


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
            return g * x * 2

    x = leaf(3)
    (g,) = grad(Once.apply(x), x, leaf(1), create_graph=True)
    assert g.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_mistakes_of_custom_functions():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Wrong.apply(leaf(1)).backward()

    class Raises(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Raises.apply(leaf(1)).backward()
    x = leaf(1)
    y = Cube.apply(x, 1)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_contexts_are_freed():
    x = leaf(1)
    y = Cube.apply(x, 1)
    node = weakref.ref(y.grad_fn)
    y.backward()
    del y
    assert node() is None


def test_in_place_on_views():
    x = leaf(1, 2, 3)
    y = x * 1
    y[1:].mul_(10)
    y.backward(ones(3))
    assert x.grad.tolist() == [1.0, 10.0, 10.0]
    with pytest.raises(RuntimeError, match="leaf"):
        x[0].add_(1)


def _relaid(change):
    """The gradient of `x` after `change(b)` for `b = 2 * x`, with `x = [[0, 1, 2], [3, 4, 5]]`."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    change(x * 2, torch.arange(1.0, 7.0).reshape(2, 3)).backward()
    return x.grad.tolist()


def test_views_of_a_base_that_got_another_layout():
    # Gradients measured on PyTorch 2.15.
    def write_through_an_old_view(b, w):
        row = b[0]
        b.t_()
        row.mul_(3)
        return (b * w.t()).sum()

    def write_to_the_base(b, w):
        row = b[0]
        b.t_()
        b.mul_(3)
        return (row * w[0]).sum()

    def write_through_a_view_of_an_old_view(b, w):
        row = b[0]
        b.t_()
        row[1:].mul_(5)
        return (b * w.t()).sum() + (row * w[1]).sum()

    def two_changes(b, w):
        column = b[:, 1]
        b.t_()
        b.unsqueeze_(0)
        column.mul_(3)
        b.mul_(2)
        return (column * torch.tensor([1.0, 4.0])).sum() + (b * w.t()).sum()

    def there_and_back(b, w):
        b.t_()
        column = b[0]
        column.mul_(3)
        b.t_()
        column.add_(1)
        return (b * b * w).sum()

    assert _relaid(write_through_an_old_view) == [[6, 12, 18], [8, 10, 12]]
    assert _relaid(write_to_the_base) == [[6, 12, 18], [0, 0, 0]]
    assert _relaid(write_through_a_view_of_an_old_view) == [[10, 70, 90], [8, 10, 12]]
    assert _relaid(two_changes) == [[4, 36, 12], [16, 108, 24]]
    assert _relaid(there_and_back) == [[12, 16, 48], [912, 160, 240]]


def test_a_second_backward_needs_only_what_was_saved():
    # PyTorch 2.15: nothing is saved for sums and differences, so nothing is missed.
    x = torch.ones(3, requires_grad=True)
    loss = (x + x - 1).sum()
    loss.backward()
    loss.backward()
    assert x.grad.tolist() == [4, 4, 4]
    product = (x * x).sum()
    product.backward()
    with pytest.raises(RuntimeError, match="second time"):
        product.backward()
