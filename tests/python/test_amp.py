"""Autocast and the gradient scaler; dtypes as PyTorch 2.15 gives them on a CPU."""

import pickle
import warnings

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def square(dtype=F32):
    torch.manual_seed(0)
    return torch.randn(3, 3).to(dtype)


LOWER = {
    "matmul": lambda x: x @ x,
    "mm": lambda x: torch.mm(x, x),
    "bmm": lambda x: torch.bmm(x[None], x[None]),
    "addmm": lambda x: torch.addmm(x, x, x),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None]),
    "linear": lambda x: F.linear(x, x),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}
KEPT = {
    "add": lambda x: x + x,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(),
    "softmax": lambda x: x.softmax(-1),
    "mv": lambda x: torch.mv(x, x[0]),
    "dot": lambda x: torch.dot(x[0], x[1]),
}
FULL = {
    "mse_loss": lambda x: F.mse_loss(x, x),
    "l1_loss": lambda x: F.l1_loss(x, x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])),
    "nll_loss": lambda x: F.nll_loss(x, torch.tensor([0, 1, 2])),
    "kl_div": lambda x: F.kl_div(x, x, reduction="sum"),
    "prod": lambda x: x.prod(),
}


@pytest.mark.parametrize("dtype", [BF16, F16])
@pytest.mark.parametrize("name", LOWER)
def test_products_in_lower_precision(name, dtype):
    x = square()
    with torch.autocast("cpu", dtype=dtype):
        result = LOWER[name](x)
    assert result.dtype == dtype
    assert torch.equal(result, LOWER[name](x.to(dtype)))
    assert LOWER[name](x).dtype == F32


@pytest.mark.parametrize("name", KEPT)
def test_what_stays_as_it_is(name):
    with torch.autocast("cpu"):
        assert KEPT[name](square()).dtype == F32
        assert KEPT[name](square(BF16)).dtype == BF16


@pytest.mark.parametrize("name", FULL)
def test_losses_in_single_precision(name):
    with torch.autocast("cpu"):
        assert FULL[name](square(BF16)).dtype == F32
    assert FULL[name](square(BF16)).dtype == BF16


def test_doubles_and_integers_stay():
    with torch.autocast("cpu"):
        assert (square(torch.float64) @ square(torch.float64)).dtype == torch.float64
        assert (torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)).dtype == torch.int64


def test_widest():
    x, low = square(), square(BF16)
    with torch.autocast("cpu"):
        assert torch.cat([x, low]).dtype == F32
        assert torch.stack([low, low]).dtype == BF16
        assert low.index_copy(0, torch.tensor([0]), x[:1]).dtype == F32


def test_nesting_and_decorator():
    x = square()
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == BF16
        with torch.autocast("cpu", enabled=False):
            assert (x @ x).dtype == F32
        with torch.autocast("cpu", dtype=F16):
            assert (x @ x).dtype == F16
        assert (x @ x).dtype == BF16
    assert not torch.is_autocast_enabled("cpu")

    @torch.autocast("cpu")
    def product(x):
        return x @ x

    assert product(x).dtype == BF16 and (x @ x).dtype == F32
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        raise ZeroDivisionError
    assert not torch.is_autocast_enabled("cpu")


def test_gradients_arrive_in_single_precision():
    layer = nn.Linear(3, 3)
    with torch.autocast("cpu"):
        loss = (layer(square()) + layer(square())).float().sum()
    loss.backward()
    assert layer.weight.grad.dtype == F32
    # The weight is converted once in a region: its gradient was summed in half precision before it was converted back.
    assert torch.equal(layer.weight.grad, layer.weight.grad.to(BF16).float())


def test_a_changed_weight_is_converted_again():
    weight = torch.ones(2, 2, requires_grad=True)
    x = torch.ones(1, 2)
    with torch.autocast("cpu"):
        before = x @ weight
        with torch.no_grad():
            weight.mul_(2)
        after = x @ weight
    assert before.tolist() == [[2, 2]] and after.tolist() == [[4, 4]]


def test_devices_that_are_not_here():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        region = torch.autocast("cuda", dtype=F16)
    with region:
        assert (square() @ square()).dtype == F32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autocast("cuda", enabled=False)
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        torch.autocast("cpu", dtype=F32)
    with pytest.raises(RuntimeError, match="Expected one of"):
        torch.autocast("toaster")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(torch.device("cpu"))


def test_custom_function():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=F32)
        def forward(ctx, a, b):
            seen.append((a.dtype, torch.is_autocast_enabled("cpu")))
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g.dtype, torch.is_autocast_enabled("cpu")))
            return g @ b.T, a.T @ g

    a = torch.ones(2, 2, dtype=BF16, requires_grad=True)
    with torch.autocast("cpu"):
        Product.apply(a, torch.ones(2, 2)).sum().backward()
    assert seen == [(F32, False), (F32, False)] and a.grad.dtype == BF16


def test_scaler():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for k in range(2):
        optimizer.zero_grad()
        scaler.scale(w.sum()).backward()
        assert w.grad.tolist() == [4.0, 4.0]
        scaler.unscale_(optimizer)
        assert w.grad.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="unscale_.. has already been called"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == (4.0, 8.0)[k]
    assert w.tolist() == [0.5, 0.5]
    optimizer.zero_grad()
    scaler.scale(w.sum() * float("inf")).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert w.tolist() == [0.5, 0.5] and scaler.get_scale() == 4.0
    assert scaler.state_dict() == {
        "scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 0,
    }  # fmt: skip
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(pickle.loads(pickle.dumps(scaler)).state_dict())
    assert other.get_scale() == 4.0


def test_scaler_that_is_off():
    with pytest.warns(FutureWarning):
        scaler = torch.cuda.amp.GradScaler(enabled=False)
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    loss = w.sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0]
