"""Layers, losses and initialisers. Numbers named 2.15 were printed by PyTorch 2.15.0 on x86-64 from the same seed."""

import math

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.nn import init


def close(tensor, wanted, atol=1e-6):
    return torch.allclose(tensor.double(), torch.tensor(wanted, dtype=torch.float64).reshape(tensor.shape), 1e-6, atol)


def test_first_weights_2_15():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    assert close(
        layer.weight.detach(),
        [-0.004322517663240433, 0.3097158372402191, -0.4751853346824646, -0.4248946011066437, -0.2223689705133438,
         0.15482072532176971],
    )  # fmt: skip
    assert close(layer.bias.detach(), [-0.011439144611358643, 0.45777493715286255])
    torch.manual_seed(0)
    table = nn.Embedding(3, 2, padding_idx=1)
    assert close(
        table.weight.detach(), [1.5409960746765137, -0.293428897857666, 0, 0, -1.0845223665237427, -1.3985954523086548]
    )


@pytest.mark.parametrize(
    "name, settings, wanted",
    [
        ("xavier_uniform_", {}, [-0.008201400749385357, 0.5876445174217224, -0.9016007781028748, -0.8061808347702026, -0.4219154715538025, 0.29375168681144714]),
        ("xavier_normal_", {}, [0.9746115207672119, -0.18558073043823242, -1.3779873847961426, 0.3595075011253357, -0.6859121322631836, -0.8845493793487549]),
        ("kaiming_uniform_", {}, [-0.010587962344288826, 0.75864577293396, -1.1639615297317505, -1.040774941444397, -0.5446904897689819, 0.3792317807674408]),
        ("kaiming_normal_", dict(mode="fan_out", nonlinearity="relu"), [1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991, -1.0845223665237427, -1.3985954523086548]),
        ("trunc_normal_", {}, [1.5409960746765137, -0.293428897857666, -0.7192575931549072, 0.5684312582015991, -1.0845223665237427, -1.3985954523086548]),
        ("trunc_normal_", dict(mean=3.0), [1.2475640773773193, 1.719196081161499, 1.8109524250030518, 1.9882662296295166, 1.0979440212249756, 1.3476357460021973]),
        ("sparse_", dict(sparsity=0.5), [0.0, -0.002934289164841175, 0.0, 0.005684312898665667, 0.0, -0.013985954225063324]),
    ],
)  # fmt: skip
def test_initialisers_2_15(name, settings, wanted):
    torch.manual_seed(0)
    made = torch.empty(2, 3)
    assert getattr(init, name)(made, **settings) is made
    assert close(made, wanted)


def test_initialisers_without_draws():
    assert init.constant_(torch.empty(2), 3).tolist() == [3.0, 3.0]
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert init.dirac_(torch.empty(2, 1, 3), 2).tolist() == [[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]]]
    assert init.zeros_(init.ones_(torch.empty(1))).item() == 0.0
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("leaky_relu", 1.0) == 1.0
    parameter = nn.Parameter(torch.empty(2, 2))
    assert init.ones_(parameter) is parameter and parameter.is_leaf


@pytest.mark.parametrize(
    "act",
    [
        lambda: init.calculate_gain("foo"), lambda: init.xavier_normal_(torch.empty(3)),
        lambda: init.kaiming_normal_(torch.empty(3, 3), mode="foo"), lambda: init.eye_(torch.empty(3)),
        lambda: nn.Dropout(1.5), lambda: F.dropout(torch.ones(1), -1),
        lambda: F.mse_loss(torch.ones(2), torch.ones(2), reduction="foo"),
    ],
)  # fmt: skip
def test_bad_settings(act):
    with pytest.raises(ValueError):
        act()


@pytest.mark.parametrize(
    "module, text",
    [
        (lambda: nn.Embedding(3, 4, padding_idx=0, max_norm=1.0), "Embedding(3, 4, padding_idx=0, max_norm=1.0)"),
        (lambda: nn.Embedding(3, 4, padding_idx=-1, norm_type=3.0, scale_grad_by_freq=True), "Embedding(3, 4, padding_idx=2, norm_type=3.0, scale_grad_by_freq=True)"),
        (lambda: nn.LayerNorm(4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (lambda: nn.LayerNorm((2, 3), elementwise_affine=False), "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False, bias=False)"),
        (lambda: nn.Dropout(), "Dropout(p=0.5, inplace=False)"),
        (lambda: nn.Flatten(), "Flatten(start_dim=1, end_dim=-1)"),
        (lambda: nn.Unflatten(1, (2, 3)), "Unflatten(dim=1, unflattened_size=(2, 3))"),
        (lambda: nn.Identity(3, x=4), "Identity()"),
        (lambda: nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (lambda: nn.Softmax(1), "Softmax(dim=1)"),
        (lambda: nn.LeakyReLU(0.1, True), "LeakyReLU(negative_slope=0.1, inplace=True)"),
        (lambda: nn.ELU(), "ELU(alpha=1.0)"),
        (lambda: nn.Hardtanh(), "Hardtanh(min_val=-1.0, max_val=1.0)"),
        (lambda: nn.ReLU6(True), "ReLU6(inplace=True)"),
        (lambda: nn.Softplus(), "Softplus(beta=1.0, threshold=20.0)"),
        (lambda: nn.ReLU(True), "ReLU(inplace=True)"),
        (lambda: nn.SiLU(), "SiLU()"),
        (lambda: nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)  # fmt: skip
def test_repr(module, text):
    assert repr(module()) == text


X = [-30.0, -3.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, 7.0]


@pytest.mark.parametrize(
    "module, function",
    [
        (nn.ReLU(), lambda x: max(x, 0.0)),
        (nn.Tanh(), math.tanh),
        (nn.Sigmoid(), lambda x: 1 / (1 + math.exp(-x))),
        (nn.GELU(), lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2))),
        (nn.GELU("tanh"), lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        (nn.SiLU(), lambda x: x / (1 + math.exp(-x))),
        (nn.LeakyReLU(0.1), lambda x: x if x > 0 else 0.1 * x),
        (nn.ELU(2.0), lambda x: x if x > 0 else 2 * math.expm1(x)),
        (nn.Softplus(), lambda x: math.log1p(math.exp(x))),
        (nn.Hardtanh(-0.5, 2.0), lambda x: min(max(x, -0.5), 2.0)),
        (nn.ReLU6(), lambda x: min(max(x, 0.0), 6.0)),
        (nn.Softsign(), lambda x: x / (1 + abs(x))),
        (nn.Tanhshrink(), lambda x: x - math.tanh(x)),
    ],
    ids=lambda v: repr(v) if isinstance(v, nn.Module) else "",
)
def test_activations(module, function):
    x = torch.tensor(X, dtype=torch.float64)
    assert torch.allclose(module(x), torch.tensor([function(v) for v in X], dtype=torch.float64), 1e-12, 1e-14)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "hardtanh", "silu"])
def test_in_place_activations(name):
    x = torch.tensor(X)
    wanted = getattr(F, name)(x)
    assert getattr(F, name)(x, inplace=True) is x and torch.equal(x, wanted)


def test_softmax_family():
    x = torch.tensor([[0.5, -1.0, 2.0], [100.0, 0.0, -100.0]], dtype=torch.float64)
    rows = [[math.exp(v - max(r)) for v in r] for r in x.tolist()]
    wanted = torch.tensor([[v / sum(r) for v in r] for r in rows], dtype=torch.float64)
    assert torch.allclose(F.softmax(x, 1), wanted, 1e-14, 1e-300)
    assert torch.allclose(nn.LogSoftmax(1)(x).exp(), wanted, 1e-12, 1e-300)
    assert torch.equal(F.softmin(x, 1), F.softmax(-x, 1))
    assert F.softmax(x.float(), 0, dtype=torch.float64).dtype == torch.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        assert torch.equal(F.softmax(x), F.softmax(x, 1))


def test_linear_flatten_unflatten():
    x = torch.arange(24.0).reshape(2, 3, 4)
    layer = nn.Linear(4, 5)
    assert torch.allclose(layer(x), x @ layer.weight.t() + layer.bias, 1e-5, 1e-5)
    assert nn.Flatten()(x).shape == (2, 12) and nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4)
    assert nn.Linear(4, 5, bias=False).bias is None


def test_layer_norm():
    x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4) ** 2
    norm = nn.LayerNorm(4, dtype=torch.float64)
    mean, var = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    assert torch.allclose(norm(x), (x - mean) / (var + 1e-5).sqrt(), 1e-12, 1e-12)


def test_embedding():
    table = nn.Embedding(4, 3, padding_idx=-1)
    out = table(torch.tensor([[0, 1], [0, 3]]))
    assert out.shape == (2, 2, 3) and torch.equal(out[0, 1], table.weight[1])
    out.sum().backward()
    assert table.weight.grad.tolist() == [[2.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]
    frozen = nn.Embedding.from_pretrained(torch.ones(3, 2))
    assert not frozen.weight.requires_grad and frozen(torch.tensor(1)).tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match="must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=5)


def test_embedding_max_norm_rescales_what_is_looked_up():
    table = nn.Embedding.from_pretrained(torch.tensor([[3.0, 4.0], [3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    table(torch.tensor([0, 2, 0]))
    assert close(table.weight, [0.6, 0.8, 3.0, 4.0, 0.3, 0.4])


def test_dropout():
    x = torch.ones(10000)
    torch.manual_seed(0)
    out = nn.Dropout(0.25)(x)
    kept = out[out != 0]
    assert bool((kept == 1 / 0.75).all()) and abs(len(kept) / 10000 - 0.75) < 0.02
    assert nn.Dropout(0.25).eval()(x) is x or torch.equal(nn.Dropout(0.25).eval()(x), x)
    assert F.dropout(x, 1.0).sum().item() == 0.0


def log_softmax(row):
    top = max(row)
    total = math.log(sum(math.exp(v - top) for v in row)) + top
    return [v - total for v in row]


SCORES = [[0.2, -1.0, 3.0], [1.5, 0.3, -0.7], [0.0, 0.0, 0.0], [2.0, -2.0, 0.5]]
CLASSES = [0, 2, -100, 1]
WEIGHT = [1.0, 2.0, 3.0]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_by_classes(reduction, smoothing):
    losses, weights = [], []
    for row, target in zip(SCORES, CLASSES):
        if target == -100:
            losses.append(0.0)
            continue
        logs = log_softmax(row)
        spread = sum(w * v for w, v in zip(WEIGHT, logs)) / 3
        losses.append(-(1 - smoothing) * WEIGHT[target] * logs[target] - smoothing * spread)
        weights.append(WEIGHT[target])
    wanted = {"none": losses, "sum": sum(losses), "mean": sum(losses) / sum(weights)}[reduction]
    x = torch.tensor(SCORES, dtype=torch.float64)
    got = F.cross_entropy(
        x,
        torch.tensor(CLASSES),
        torch.tensor(WEIGHT, dtype=torch.float64),
        reduction=reduction,
        label_smoothing=smoothing,
    )
    assert torch.allclose(got, torch.tensor(wanted, dtype=torch.float64), 1e-12, 1e-12)


def test_cross_entropy_by_probabilities():
    x = torch.tensor(SCORES, dtype=torch.float64)
    target = F.softmax(x[[3, 2, 1, 0]], 1)
    wanted = -(target * F.log_softmax(x, 1)).sum() / 4
    assert torch.allclose(nn.CrossEntropyLoss()(x, target), wanted, 1e-12, 1e-12)
    gentle = target * 0.8 + 0.2 / 3
    assert torch.allclose(
        nn.CrossEntropyLoss(label_smoothing=0.2)(x, target), -(gentle * F.log_softmax(x, 1)).sum() / 4, 1e-12, 1e-12
    )


def test_cross_entropy_of_a_sequence_and_of_one():
    x = torch.tensor(SCORES).t().reshape(1, 3, 4)
    assert torch.allclose(
        F.cross_entropy(x, torch.tensor([CLASSES])), F.cross_entropy(torch.tensor(SCORES), torch.tensor(CLASSES))
    )
    assert torch.allclose(
        F.cross_entropy(torch.tensor(SCORES[0]), torch.tensor(2)),
        F.cross_entropy(torch.tensor(SCORES[:1]), torch.tensor([2])),
    )


def test_mean_squared_error():
    x, y = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 0.0, 0.0])
    assert F.mse_loss(x, y).item() == pytest.approx(20 / 3)
    assert nn.MSELoss(reduction="sum")(x, y).item() == 20.0
    assert nn.MSELoss(reduction="none")(x, y).tolist() == [0.0, 4.0, 16.0]
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(x, torch.zeros(2, 3))
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(x, y, size_average=False).item() == 20.0


def test_attention_is_softmax_of_scores():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(3))
    scores = q @ k.transpose(-2, -1) / 2.0
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v), F.softmax(scores, -1) @ v, 1e-10, 1e-10)
    causal = F.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v, is_causal=True), causal, 1e-10, 1e-10)
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v, attn_mask=mask), causal, 1e-10, 1e-10)


def test_normalize():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert close(F.normalize(x), [0.6, 0.8, 0.0, 0.0])


def test_old_names_of_initialisers():
    with pytest.warns(FutureWarning, match="constant_"):
        assert init.constant(torch.empty(1), 2.0).item() == 2.0
    with pytest.raises(AttributeError, match="nn.init.nothing"):
        init.nothing  # noqa: B018
