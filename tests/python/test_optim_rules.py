"""Optimizers and schedules against numbers measured on PyTorch 2.15 (float64, the four gradients below)."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn, optim

START = [1.0, -2.0, 0.5]
GRADS = [[0.3, -1.0, 2.0], [-0.7, 0.1, 0.0], [1.5, 0.2, -0.4], [0.01, -3.0, 1.0]]

# fmt: off
MEASURED = [
    ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.2, initial_accumulator_value=0.5), [0.90930324697, -1.815859063297, 0.38032097953], "step sum"),
    ("Adagrad", dict(maximize=True), [1.009784566951, -2.016516367131, 0.51244109318], "step sum"),
    ("Adadelta", dict(lr=0.5, rho=0.8), [0.998418318588, -1.997979552968, 0.498416832236], "step square_avg acc_delta"),
    ("Adadelta", dict(weight_decay=0.1, maximize=True), [1.003715267492, -2.004183803288, 0.50408077466], "step square_avg acc_delta"),
    ("Adamax", dict(lr=0.1, weight_decay=0.1), [0.865580399976, -1.779039267328, 0.295793914478], "step exp_avg exp_inf"),
    ("Adamax", dict(lr=0.1, betas=(0.4, 0.9), maximize=True), [1.118594943372, -2.178397945219, 0.66946244154], "step exp_avg exp_inf"),
    ("NAdam", dict(lr=0.1, weight_decay=0.1), [0.863385512142, -1.755999485928, 0.338925878516], "step mu_product exp_avg exp_avg_sq"),
    ("NAdam", dict(lr=0.1, weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.01), [0.845824585359, -1.720471985192, 0.328171271335], "step mu_product exp_avg exp_avg_sq"),
    ("RAdam", dict(lr=0.1), [0.922143032655, -1.737863276568, 0.099238601284], "step exp_avg exp_avg_sq"),
    ("RAdam", dict(lr=0.1, betas=(0.8, 0.6), weight_decay=0.1, decoupled_weight_decay=True), [0.879588271641, -1.660058448802, 0.105689709731], "step exp_avg exp_avg_sq"),
    ("RMSprop", dict(lr=0.1), [0.021164560943, -0.349315732763, -0.747433395009], "step square_avg"),
    ("RMSprop", dict(lr=0.1, momentum=0.9, centered=True, weight_decay=0.1, maximize=True), [3.198175021891, -4.176396854021, 3.491807582003], "step square_avg momentum_buffer grad_avg"),
    ("ASGD", dict(lr=0.1, t0=1, lambd=0.01), [0.885284523116, -1.62291612261, 0.238728400961], "step eta mu ax"),
    ("Rprop", dict(lr=0.1), [0.79, -1.95, 0.5], "step prev step_size"),
    ("Rprop", dict(lr=0.1, etas=(0.4, 1.5), step_sizes=(0.05, 0.2), maximize=True), [1.225, -2.05, 0.5], "step prev step_size"),
    ("Adafactor", dict(lr=0.1), [0.838142513049, -1.748550815479, 0.308649294365], "step variance"),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, maximize=True), [1.107897792805, -2.206291016202, 0.689705455026], "step variance"),
]

SCHEDULES = [
    ("OneCycleLR", dict(max_lr=0.1, total_steps=10), [0.004, 0.052, 0.1, 0.095048463201, 0.081174565395, 0.061126202194, 0.038874197806, 0.018825834605], [0.95, 0.9, 0.85, 0.854951556605, 0.868825509907, 0.888873953302, 0.911126046698, 0.931174490093]),
    ("OneCycleLR", dict(max_lr=0.1, epochs=5, steps_per_epoch=2, three_phase=True, anneal_strategy='linear'), [0.004, 0.052, 0.1, 0.052, 0.004, 0.00320008, 0.00240016, 0.00160024], [0.95, 0.9, 0.85, 0.9, 0.95, 0.95, 0.95, 0.95]),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=2, step_size_down=3), [0.01, 0.055, 0.1, 0.07, 0.04, 0.01, 0.055, 0.1], [0.9, 0.85, 0.8, 0.833333333333, 0.866666666667, 0.9, 0.85, 0.8]),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=2, mode='exp_range', gamma=0.9), [0.01, 0.0505, 0.0829, 0.042805, 0.01, 0.03657205, 0.05782969, 0.0315233605], [0.9, 0.855, 0.819, 0.86355, 0.9, 0.8704755, 0.8468559, 0.876085155]),
    ("CosineAnnealingWarmRestarts", dict(T_0=2, T_mult=2, eta_min=0.01), [0.1, 0.055, 0.1, 0.086819805153, 0.055, 0.023180194847, 0.1, 0.096574578963], [0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]),
]
# fmt: on


def train(make, grads, param):
    for grad in grads:
        param.grad = torch.tensor(grad, dtype=param.dtype)
        make.step()


@pytest.mark.parametrize("name,settings,want,state", MEASURED)
def test_steps(name, settings, want, state):
    param = nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = getattr(optim, name)([param], **settings)
    train(optimizer, GRADS, param)
    assert param.tolist() == pytest.approx(want, rel=1e-10)
    assert list(optimizer.state[param]) == state.split()
    assert optimizer.state[param]["step"].item() == 4.0


@pytest.mark.parametrize("name,settings,want,state", MEASURED)
def test_state_goes_through_a_file(name, settings, want, state):
    param = nn.Parameter(torch.tensor(START, dtype=torch.float64))
    first = getattr(optim, name)([param], **settings)
    train(first, GRADS[:2], param)
    second = getattr(optim, name)([param], **settings)
    second.load_state_dict(pickle.loads(pickle.dumps(copy.deepcopy(first.state_dict()))))
    train(second, GRADS[2:], param)
    # NAdam's product of factors is a float32 that loading widens, in PyTorch as well: it gives these very numbers there.
    assert param.tolist() == pytest.approx(want, rel=2e-9 if name == "NAdam" else 1e-10)


@pytest.mark.parametrize("name,settings,want,state", [case for case in MEASURED if case[0] != "Adafactor"])
def test_differentiable_steps(name, settings, want, state):
    """The same rule in tensor operations, through which the first value has a gradient."""
    start = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    param = start.clone()
    optimizer = getattr(optim, name)([param], differentiable=True, **settings)
    train(optimizer, GRADS, param)
    # NAdam's product of factors is computed in float32 here (PyTorch's own numbers move by 2e-8).
    assert param.tolist() == pytest.approx(want, rel=2e-8 if name == "NAdam" else 1e-10)
    param.sum().backward()
    assert torch.isfinite(start.grad).all() and start.grad.abs().sum() > 0


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "ASGD", "Rprop"])
def test_complex_parameters_are_pairs_of_numbers(name):
    grads = [[[0.3, -1.0], [2.0, 0.5]], [[-0.7, 0.1], [0.2, 1.0]]]
    pairs = nn.Parameter(torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64))
    numbers = nn.Parameter(torch.view_as_complex(pairs.detach().clone()))
    for param in (pairs, numbers):
        optimizer = getattr(optim, name)([param], lr=0.1)
        for grad in grads:
            grad = torch.tensor(grad, dtype=torch.float64)
            param.grad = grad if param is pairs else torch.view_as_complex(grad)
            optimizer.step()
    assert torch.view_as_real(numbers.detach()).flatten().tolist() == pytest.approx(pairs.detach().flatten().tolist(), rel=1e-13)


@pytest.mark.parametrize("name,settings,rates,momenta", SCHEDULES)
def test_schedules(name, settings, rates, momenta):
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    schedule = getattr(optim.lr_scheduler, name)(optimizer, **settings)
    for rate, momentum in zip(rates, momenta):
        group = optimizer.param_groups[0]
        assert (group["lr"], group["momentum"]) == pytest.approx((rate, momentum), rel=1e-9)
        optimizer.step()
        schedule.step()


def test_plateau():
    optimizer = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    rates = []
    for measure in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0):
        schedule.step(measure)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2]


def test_muon_makes_the_step_orthogonal():
    """Measured on PyTorch; the iterations are in bfloat16, which rounds to 3 digits."""
    weight = nn.Parameter(torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.2, -1.0]]))
    optimizer = optim.Muon([weight], lr=0.1)
    weight.grad = torch.tensor([[0.3, -1.0, 2.0], [-0.7, 0.1, 0.0]])
    optimizer.step()
    want = [0.98526, -1.94719, 0.42781, 0.39778, 0.19097, -1.00523]
    assert weight.flatten().tolist() == pytest.approx(want, abs=2e-3)
    with pytest.raises(ValueError, match="2D"):
        optim.Muon([nn.Parameter(torch.ones(3))])


def test_lbfgs_finds_the_valley():
    x = nn.Parameter(torch.tensor([-1.5, 2.0], dtype=torch.float64))
    optimizer = optim.LBFGS([x], max_iter=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


def test_sparse_adam_refuses():
    with pytest.raises(NotImplementedError, match="sparse"):
        optim.SparseAdam([nn.Parameter(torch.ones(1))])


def test_averaged_model():
    model = nn.Linear(1, 1, bias=False)
    average = optim.swa_utils.AveragedModel(model)
    moving = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
        moving.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(3.0)
    assert moving.module.weight.item() == pytest.approx(3.75)
    assert average.n_averaged.item() == 3
