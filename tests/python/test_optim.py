"""Optimizers, held against the formulas of their papers in Python's own numbers, and their state."""

import copy
import math
import pickle

import pytest

import flambeau as torch
from flambeau import nn, optim

START = [1.0, -2.0, 0.5]
GRADS = [[0.3, -1.0, 2.0], [-0.7, 0.1, 0.0], [1.5, 0.2, -0.4], [0.01, -3.0, 1.0]]


def run(make, dtype=torch.float64):
    param = nn.Parameter(torch.tensor(START, dtype=dtype))
    optimizer = make([param])
    for grad in GRADS:
        param.grad = torch.tensor(grad, dtype=dtype)
        optimizer.step()
    return param.detach(), optimizer


def sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    buffer = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p -= lr * g
    return p


def adam(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, decoupled=False):
    m = v = top = 0.0
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            p *= 1 - lr * weight_decay
        else:
            g += weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        top = max(top, v)
        root = math.sqrt((top if amsgrad else v) / (1 - betas[1] ** t))
        p -= lr * m / (1 - betas[0] ** t) / (root + eps)
    return p


def by_element(rule, **settings):
    return [rule(p, [g[i] for g in GRADS], **settings) for i, p in enumerate(START)]


@pytest.mark.parametrize(
    "settings",
    [
        dict(lr=0.1), dict(lr=0.1, weight_decay=0.3), dict(lr=0.1, momentum=0.9), dict(lr=0.1, momentum=0.9, maximize=True),
        dict(lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1), dict(lr=0.1, momentum=0.9, nesterov=True),
    ],
    ids=str,
)  # fmt: skip
def test_sgd(settings):
    got, _ = run(lambda p: optim.SGD(p, **settings))
    assert got.tolist() == pytest.approx(by_element(sgd, **settings), rel=1e-13)


ADAM = [
    dict(lr=0.1), dict(lr=0.1, betas=(0.5, 0.9), eps=1e-3), dict(lr=0.1, weight_decay=0.2),
    dict(lr=0.1, amsgrad=True, weight_decay=0.1), dict(lr=0.1, maximize=True),
]  # fmt: skip


@pytest.mark.parametrize("settings", ADAM, ids=str)
def test_adam(settings):
    got, _ = run(lambda p: optim.Adam(p, **settings))
    assert got.tolist() == pytest.approx(by_element(adam, **settings), rel=1e-12)


@pytest.mark.parametrize("settings", ADAM, ids=str)
def test_adamw(settings):
    settings = {"weight_decay": 0.01, **settings}
    got, _ = run(lambda p: optim.AdamW(p, **settings))
    assert got.tolist() == pytest.approx(by_element(adam, decoupled=True, **settings), rel=1e-12)


# The native step rounds a product and a sum once, as PyTorch's kernels do; the same step in operations rounds twice.
ROUNDINGS = {"float32": 1e-6, "float64": 2e-15, "bfloat16": 2e-2, "float16": 3e-3}


@pytest.mark.parametrize("dtype", ROUNDINGS)
@pytest.mark.parametrize(
    "make",
    [
        lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1, **k),
        lambda p, **k: optim.SGD(p, lr=0.1, **k),
        lambda p, **k: optim.AdamW(p, lr=0.1, **k),
        lambda p, **k: optim.Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True, maximize=True, **k),
    ],
)
def test_native_step_and_tensor_operations(make, dtype):
    """`differentiable=True` takes the step in tensor operations."""
    native, _ = run(make, getattr(torch, dtype))
    param = torch.tensor(START, dtype=getattr(torch, dtype))
    by_operations = make([param], differentiable=True)
    for grad in GRADS:
        param.grad = torch.tensor(grad, dtype=getattr(torch, dtype))
        by_operations.step()
    assert native.tolist() == pytest.approx(param.tolist(), rel=ROUNDINGS[dtype])


def test_tensor_learning_rate():
    got, _ = run(lambda p: optim.SGD(p, lr=torch.tensor(0.1, dtype=torch.float64)))
    assert got.tolist() == pytest.approx(by_element(sgd, lr=0.1), rel=1e-13)


def test_state_dict_goes_on_where_it_was():
    whole, _ = run(lambda p: optim.AdamW(p, lr=0.1, amsgrad=True))
    param = nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = optim.AdamW([param], lr=0.1, amsgrad=True)
    for grad in GRADS:
        param.grad = torch.tensor(grad, dtype=torch.float64)
        optimizer.step()
        state = copy.deepcopy(optimizer.state_dict())
        optimizer = optim.AdamW([param], lr=7.0)
        optimizer.load_state_dict(state)
    assert torch.equal(whole, param)


def test_state_dict_layout():
    _, optimizer = run(lambda p: optim.AdamW(p, lr=0.1))
    state = optimizer.state_dict()
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["state"][0]["step"].item() == 4.0 and state["state"][0]["step"].dtype == torch.float32
    assert state["param_groups"] == [
        dict(
            lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, amsgrad=False, maximize=False, foreach=None,
            capturable=False, differentiable=False, fused=None, decoupled_weight_decay=True, params=[0],
        )
    ]  # fmt: skip
    _, plain = run(lambda p: optim.SGD(p, lr=0.1))
    assert plain.state_dict()["state"] == {}
    _, heavy = run(lambda p: optim.SGD(p, lr=0.1, momentum=0.9))
    assert list(heavy.state_dict()["state"][0]) == ["momentum_buffer"]


def test_loading_casts_state_to_the_parameters():
    _, optimizer = run(lambda p: optim.AdamW(p, lr=0.1))
    other = optim.AdamW([nn.Parameter(torch.zeros(3))])
    other.load_state_dict(optimizer.state_dict())
    (state,) = other.state.values()
    assert state["exp_avg"].dtype == torch.float32 and state["step"].dtype == torch.float32
    assert other.param_groups[0]["lr"] == 0.1
    with pytest.raises(ValueError, match="different number of parameter groups"):
        other.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        other.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_groups_and_names():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    a.grad, b.grad = torch.ones(1), torch.ones(1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == pytest.approx(0.5)
    named = optim.SGD([("a", a), ("b", b)])
    assert named.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    optimizer.add_param_group({"params": nn.Parameter(torch.ones(1)), "momentum": 0.5})
    assert optimizer.param_groups[2]["momentum"] == 0.5 and optimizer.state_dict()["param_groups"][2]["params"] == [2]


def test_repr():
    assert repr(optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


P = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize(
    "act, error",
    [
        (lambda: optim.SGD([]), ValueError), (lambda: optim.SGD(P), TypeError), (lambda: optim.SGD([P * 2]), ValueError),
        (lambda: optim.SGD([3]), TypeError), (lambda: optim.SGD([P], lr=-1), ValueError),
        (lambda: optim.SGD([P], nesterov=True), ValueError), (lambda: optim.SGD([P], momentum=-1), ValueError),
        (lambda: optim.SGD([{"params": P}, {"params": P}]), ValueError), (lambda: optim.SGD([{"params": {P}}]), TypeError),
        (lambda: optim.AdamW([P], betas=(1, 0)), ValueError), (lambda: optim.AdamW([P], eps=-1), ValueError),
        (lambda: optim.AdamW([P], weight_decay=-1), ValueError), (lambda: optim.SGD([("a", P), P]), ValueError),
        (lambda: optim.SGD([P], lr=torch.ones(2)), ValueError), (lambda: optim.SGD([P], fused=True, foreach=True), RuntimeError),
        (lambda: optim.Optimizer([P], {}).step(), NotImplementedError),
    ],
)  # fmt: skip
def test_refusals(act, error):
    with pytest.raises(error):
        act()


def test_zero_grad():
    p = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = torch.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.step()
    assert p.tolist() == [1.0, 1.0]


def test_step_hooks_and_closure():
    log = []

    class Mine(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, dict(lr=1.0))

        def step(self, closure=None):
            log.append("step")
            return closure()

    optimizer = Mine([nn.Parameter(torch.ones(1))])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    assert optimizer.step(lambda: 3) == 3 and log == ["pre", "step", "post"]


def test_closure_records():
    p = nn.Parameter(torch.tensor([3.0]))
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert p.item() == pytest.approx(2.4)


def test_pickle():
    _, optimizer = run(lambda p: optim.AdamW(p, lr=0.1))
    other = pickle.loads(pickle.dumps(optimizer))
    assert repr(other) == repr(optimizer)
    (state,) = other.state.values()
    assert state["step"].item() == 4.0 and other.param_groups[0]["params"][0] in other.state
