"""Transforms of functions: `flambeau.func`, `vmap`, `autograd.functional`, `autograd.forward_ad`."""

import pytest

import flambeau as torch
import flambeau.autograd.forward_ad as fwAD
from flambeau.autograd import functional as AF
from flambeau.func import (
    functional_call, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp,
    vmap,
)  # fmt: skip


def close(a, b):
    torch.testing.assert_close(a, b)


@pytest.fixture
def x():
    return torch.tensor([0.5, -1.25, 2.0])


def wave(x):
    return (x.sin() * x.sum()).sum()


def test_second_derivatives_agree_whichever_way_they_are_made(x):
    made = [
        hessian(wave)(x), jacrev(jacrev(wave))(x), jacfwd(jacfwd(wave))(x), jacrev(jacfwd(wave))(x),
        AF.hessian(wave, x), AF.hessian(wave, x, vectorize=True),
        AF.hessian(wave, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
    ]  # fmt: skip
    for h in made:
        close(h, made[0])
        close(h, h.t())
    numeric = torch.stack([
        (grad(wave)((x + d).double()) - grad(wave)((x - d).double())) / 2e-4 for d in torch.eye(3) * 1e-4
    ])  # fmt: skip
    torch.testing.assert_close(made[0].double(), numeric, rtol=1e-3, atol=1e-3)


def test_transforms_nest_in_any_order(x):
    second = -x.sin()
    close(vmap(grad(grad(torch.sin)))(x), second)
    close(grad(lambda x: vmap(grad(torch.sin))(x).sum())(x), second)
    close(vmap(lambda x: jvp(grad(torch.sin), (x,), (torch.ones(()),))[1])(x), second)
    close(jvp(vmap(grad(torch.sin)), (x,), (torch.ones(3),))[1], second)
    close(grad(lambda x: jvp(torch.sin, (x,), (torch.ones(3),))[1].sum())(x), second)
    close(vmap(vmap(grad(torch.sin)))(x.expand(2, 3)), x.cos().expand(2, 3))


def test_grad_of_some_arguments_and_with_a_second_result():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    f = lambda a, b: ((a * b).sum(), a + b)
    (da, db), aux = grad(f, argnums=(0, 1), has_aux=True)(a, b)
    close(da, b)
    close(db, a)
    close(aux, a + b)
    gradient, (value, aux) = grad_and_value(f, argnums=-1, has_aux=True)(a, b)
    close(gradient, a)
    assert value.item() == 11
    nested = grad(lambda p: (p["w"] * p["w"]).sum() * p["b"][0])({"w": a, "b": [torch.tensor(3.0)]})
    close(nested, {"w": 6 * a, "b": [torch.tensor(5.0)]})


def test_grad_refuses_what_is_not_a_scalar(x):
    with pytest.raises(RuntimeError, match="Expected f.* to return a scalar tensor, got tensor with 1 dims"):
        grad(torch.sin)(x)
    with pytest.raises(RuntimeError, match="Got argnum=1, but only 1 positional inputs"):
        grad(wave, argnums=1)(x)


def test_vjp_of_several_results(x):
    (value, twice), pull = vjp(lambda x: (x.sum(), 2 * x), x)
    close(value, x.sum())
    close(twice, 2 * x)
    close(pull((torch.tensor(3.0), torch.ones(3)))[0], torch.full((3,), 5.0))
    with pytest.raises(RuntimeError, match="structure"):
        pull((torch.tensor(3.0),))


def test_jacobians_of_nested_arguments():
    f = lambda p: {"y": p["a"] @ p["b"], "z": p["b"].sum(0)}
    p = {"a": torch.randn(2, 3), "b": torch.randn(3, 4)}
    rev, fwd = jacrev(f)(p), jacfwd(f)(p)
    assert rev["y"]["a"].shape == (2, 4, 2, 3) and rev["z"]["b"].shape == (4, 3, 4)
    close(rev, fwd)
    close(jacrev(f, chunk_size=3)(p), rev)


def test_values_changed_in_place_inside(x):
    def f(x):
        y = torch.zeros(3)
        y[0] = x[0]
        y.add_(x)
        z = y.clone()
        z[1:].mul_(x[:2])
        return (z * z).sum()

    leaf = x.clone().requires_grad_()
    f(leaf).backward()
    close(grad(f)(x), leaf.grad)
    close(jvp(f, (x,), (torch.ones(3),))[1], leaf.grad.sum())
    rows = torch.stack([x, 2 * x])
    with pytest.raises(RuntimeError, match="vmap: inplace"):
        vmap(f)(rows)
    g = lambda x: f2(x.clone())

    def f2(y):
        y[1:].mul_(y[:2].clone())
        return (y * y).sum()

    close(vmap(grad(g))(rows), torch.stack([grad(g)(r) for r in rows]))


def test_captured_tensors_are_not_changed():
    kept = torch.zeros(3)
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(lambda x: kept.add_(x).sum())(torch.ones(3))
    close(kept, torch.zeros(3))


def test_vmap_places_dimensions():
    a, b = torch.randn(4, 2, 3), torch.randn(3, 4)
    got = vmap(torch.matmul, in_dims=(0, 1), out_dims=1)(a, b)
    close(got, torch.stack([a[i] @ b[:, i] for i in range(4)], 1))
    both = vmap(lambda p: (p["a"] + p["b"], p["a"].sum()), in_dims=({"a": 0, "b": None},), out_dims=(-1, 0))
    first, second = both({"a": a, "b": torch.ones(2, 3)})
    close(first, (a + 1).movedim(0, -1))
    close(second, a.sum((1, 2)))
    close(vmap(lambda x: torch.ones(2))(a), torch.ones(4, 2))
    close(vmap(torch.sin, chunk_size=3)(a), a.sin())


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: vmap(torch.sin)(), ValueError, "got no inputs"),
        (lambda: vmap(torch.sin, in_dims=1)(torch.ones(3)), ValueError, "dimensionality 1"),
        (lambda: vmap(torch.add)(torch.ones(3), torch.ones(4)), ValueError, "same size in the mapped dimension"),
        (lambda: vmap(torch.add, in_dims=(0,))(torch.ones(3), torch.ones(3)), ValueError, "not compatible"),
        (lambda: vmap(lambda x: 3)(torch.ones(3)), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda x: x.item())(torch.ones(3)), RuntimeError, r"\.item\(\)"),
        (lambda: vmap(lambda x: x + torch.randn(2))(torch.ones(3)), RuntimeError, "randomness error mode"),
        (lambda: vmap(torch.sin, randomness="none")(torch.ones(3)), RuntimeError, "Only allowed values"),
    ],
)  # fmt: skip
def test_vmap_refuses(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
    close(vmap(torch.sin)(torch.ones(3)), torch.ones(3).sin())


def test_random_numbers_inside_vmap():
    f = lambda x: x + torch.randn(2)
    torch.manual_seed(0)
    want = torch.randn(3, 2)
    torch.manual_seed(0)
    close(vmap(f, randomness="different")(torch.zeros(3, 2)), want)
    torch.manual_seed(0)
    close(vmap(f, randomness="same")(torch.zeros(3, 2)), want[0].expand(3, 2))
    torch.manual_seed(0)
    drawn = vmap(lambda p: torch.bernoulli(p), randomness="same")(torch.full((3, 64), 0.5))
    assert torch.equal(drawn[0], drawn[1]) and 0 < drawn[0].sum() < 64


def test_a_batched_tensor_that_escapes_is_refused():
    kept = []
    vmap(lambda x: kept.append(x) or x)(torch.ones(3))
    with pytest.raises(RuntimeError, match="has left the function that was passed to vmap"):
        kept[0] + 1


def test_an_error_inside_leaves_everything_usable(x):
    def broken(x):
        raise ValueError("mine")

    for transform in (vmap, grad, jacfwd, jacrev):
        with pytest.raises(ValueError, match="mine"):
            transform(broken)(x)
    close(grad(wave)(x), grad(wave)(x))
    assert not x.requires_grad


def test_gradients_of_each_example_of_a_model():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 1))
    parameters = dict(model.named_parameters())
    data = torch.randn(5, 3)
    loss = lambda p, x: functional_call(model, p, (x,)).square().sum()
    each = vmap(grad(loss), in_dims=(None, 0))(parameters, data)
    for i, row in enumerate(data):
        model.zero_grad()
        model(row).square().sum().backward()
        for name, parameter in parameters.items():
            close(each[name][i], parameter.grad)
    stacked, _ = stack_module_state([model, model])
    assert stacked["0.weight"].shape == (2, 4, 3) and stacked["0.weight"].requires_grad


def test_layers_under_vmap():
    torch.manual_seed(0)
    images, kernel = torch.randn(3, 2, 4, 6, 6), torch.randn(5, 4, 3, 3)
    F = torch.nn.functional
    close(vmap(F.conv2d, (0, None))(images, kernel), torch.stack([F.conv2d(i, kernel) for i in images]))
    close(vmap(lambda i: F.max_pool2d(i, 2))(images), torch.stack([F.max_pool2d(i, 2) for i in images]))
    q = torch.randn(3, 2, 5, 8)
    close(vmap(F.scaled_dot_product_attention)(q, q, q), F.scaled_dot_product_attention(q, q, q))
    table, ids = torch.randn(7, 4), torch.tensor([[1, 2], [6, 0], [3, 3]])
    close(vmap(F.embedding, (0, None))(ids, table), F.embedding(ids, table))
    logits, target = torch.randn(3, 4, 7), torch.tensor([[1, 2, 0, 6]] * 3)
    close(vmap(F.cross_entropy)(logits, target), torch.stack([F.cross_entropy(l, t) for l, t in zip(logits, target)]))


def test_linearize_and_functionalize(x):
    value, push = linearize(torch.sin, x)
    close(value, x.sin())
    close(push(torch.ones(3)), x.cos())
    close(functionalize(torch.sin)(x), x.sin())


def test_forward_mode_on_tensors(x):
    with fwAD.dual_level():
        leaf = x.clone().requires_grad_()
        dual = fwAD.make_dual(leaf, torch.ones(3))
        y = wave(dual)
        (gradient,) = torch.autograd.grad(y, dual, create_graph=True)
        close(fwAD.unpack_dual(y).tangent, grad(wave)(x).sum())
        close(fwAD.unpack_dual(gradient).tangent, hessian(wave)(x).sum(1))
        changed = dual * 1
        changed[0] = 5.0
        changed[1:].mul_(dual[:2])
        close(fwAD.unpack_dual(changed).tangent, torch.tensor([0.0, -0.75, 0.75]))
        assert fwAD.unpack_dual(x).tangent is None
    assert fwAD.unpack_dual(dual).tangent is None
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, x)
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="same shape"):
        fwAD.make_dual(x, torch.ones(2))
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode"):
        fwAD.enter_dual_level()


def test_products_with_matrices_of_second_derivatives(x):
    v = torch.tensor([1.0, -2.0, 0.5])
    want = hessian(wave)(x) @ v
    for product in (AF.hvp, AF.vhp):
        value, found = product(wave, x, v)
        close(value, wave(x))
        close(found, want)
    close(AF.vjp(torch.sin, x, v)[1], v * x.cos())
    close(AF.jvp(torch.sin, x, v)[1], v * x.cos())
    close(AF.jacobian(torch.sin, x), torch.diag(x.cos()))
    close(AF.jacobian(torch.sin, x, vectorize=True, strategy="forward-mode"), torch.diag(x.cos()))
    (aa, ab), (ba, bb) = AF.hessian(lambda a, b: (a * a * b).sum(), (x, v))
    close(aa, torch.diag(2 * v))
    close(ab, torch.diag(2 * x))
    close(ba, torch.diag(2 * x))
    close(bb, torch.zeros(3, 3))
    with pytest.raises(RuntimeError, match="independent of input 1"):
        AF.jacobian(lambda a, b: a * 2, (x, v), strict=True)
    with pytest.raises(RuntimeError, match="v can only be None"):
        AF.vjp(torch.sin, x)


def test_gradients_of_a_batch_of_seeds(x):
    leaf = x.clone().requires_grad_()
    (rows,) = torch.autograd.grad(leaf.sin(), leaf, torch.eye(3), is_grads_batched=True)
    close(rows, torch.diag(x.cos()))


class Cube(torch.autograd.Function):
    """x^3 and 3x^2, with wrong derivatives: ten times, and seven times in forward mode, what they are."""

    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(inputs[0], outputs[1])
        ctx.save_for_forward(inputs[0], outputs[1])

    @staticmethod
    def backward(ctx, g, gdx):
        x, dx = ctx.saved_tensors
        return g * dx * 10 + gdx * 6 * x

    @staticmethod
    def jvp(ctx, t):
        x, dx = ctx.saved_tensors
        return t * dx * 7, 6 * x * t


class CubeByRule(Cube):
    generate_vmap_rule = True


class CubeByHand(Cube):
    @staticmethod
    def vmap(info, in_dims, x):
        assert in_dims == (0,) and info.batch_size == 3
        return CubeByHand.apply(x), (0, 0)


@pytest.mark.parametrize("cube", [Cube, CubeByRule, CubeByHand])
def test_custom_functions_keep_their_derivatives_at_every_level(cube, x):
    f = lambda x: cube.apply(x)[0].sum()
    close(grad(f)(x), 30 * x**2)
    close(grad(lambda x: grad(f)(x).sum())(x), 60 * x)
    close(jvp(f, (x,), (torch.ones(3),))[1], (21 * x**2).sum())
    close(jvp(grad(f), (x,), (torch.ones(3),)), (30 * x**2, 60 * x))
    with fwAD.dual_level():
        close(fwAD.unpack_dual(cube.apply(fwAD.make_dual(x, torch.ones(3)))[0]).tangent, 21 * x**2)
    if cube is Cube:
        with pytest.raises(RuntimeError, match="does not have vmap support"):
            vmap(f)(x)
        return
    close(vmap(grad(f))(x), 30 * x**2)
    close(grad(lambda x: vmap(f)(x).sum())(x), 30 * x**2)
    close(hessian(f)(x), torch.diag(60 * x))


def test_custom_functions_without_setup_context_are_refused_inside_transforms(x):
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        grad(lambda x: Old.apply(x).sum())(x)
