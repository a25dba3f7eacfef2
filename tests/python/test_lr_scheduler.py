"""Schedules. The rates are those that PyTorch 2.15.0 printed for the same calls, to the last digit."""

import pytest

import flambeau as torch
from flambeau import nn, optim
from flambeau.optim import lr_scheduler


def optimizer(lr=0.1):
    return optim.SGD([nn.Parameter(torch.ones(2))], lr=lr)


def ride(make, steps=9, reload_at=None):
    o = optimizer()
    schedule, rates = make(o), []
    for i in range(steps):
        o.step()
        rates.append(o.param_groups[0]["lr"])
        schedule.step()
        if i == reload_at:
            state, kept = schedule.state_dict(), o.state_dict()
            o = optimizer()
            schedule = make(o)
            o.load_state_dict(kept)
            schedule.load_state_dict(state)
    return rates


CASES = [
    ("StepLR", dict(step_size=3, gamma=0.5), [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025]),
    ("MultiStepLR", dict(milestones=[2, 5, 5], gamma=0.3), [0.1, 0.1, 0.03, 0.03, 0.03, 0.0026999999999999997, 0.0026999999999999997, 0.0026999999999999997, 0.0026999999999999997]),
    ("ConstantLR", dict(factor=0.5, total_iters=4), [0.05, 0.05, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ("LinearLR", dict(start_factor=0.2, total_iters=5), [0.020000000000000004, 0.03600000000000001, 0.05200000000000002, 0.06800000000000002, 0.08400000000000003, 0.10000000000000003, 0.10000000000000003, 0.10000000000000003, 0.10000000000000003]),
    ("ExponentialLR", dict(gamma=0.8), [0.1, 0.08000000000000002, 0.06400000000000002, 0.051200000000000016, 0.04096000000000002, 0.03276800000000001, 0.026214400000000013, 0.02097152000000001, 0.016777216000000008]),
    ("PolynomialLR", dict(total_iters=6, power=2.0), [0.1, 0.06944444444444446, 0.04444444444444447, 0.02500000000000001, 0.011111111111111117, 0.0027777777777777775, 0.0, 0.0, 0.0]),
    ("CosineAnnealingLR", dict(T_max=4, eta_min=0.01), [0.1, 0.08681980515339464, 0.05500000000000001, 0.023180194846605363, 0.01, 0.023180194846605363, 0.05500000000000002, 0.08681980515339469, 0.10000000000000006]),
]  # fmt: skip


@pytest.mark.parametrize("reload_at", [None, 4])
@pytest.mark.parametrize("name, settings, rates", CASES, ids=[case[0] for case in CASES])
def test_rates(name, settings, rates, reload_at):
    assert ride(lambda o: getattr(lr_scheduler, name)(o, **settings), reload_at=reload_at) == rates


@pytest.mark.parametrize("reload_at", [None, 1, 5])
def test_sequential(reload_at):
    def make(o):
        parts = [lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=3), lr_scheduler.CosineAnnealingLR(o, 6)]
        return lr_scheduler.SequentialLR(o, parts, [3])

    assert ride(make, reload_at=reload_at) == [
        0.010000000000000002, 0.04, 0.07, 0.1, 0.09330127018922195, 0.07500000000000001, 0.05, 0.025000000000000012,
        0.006698729810778065,
    ]  # fmt: skip


def test_chained():
    def make(o):
        return lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.1, 3), lr_scheduler.ExponentialLR(o, 0.9)])

    assert ride(make) == [
        0.010000000000000002, 0.009000000000000003, 0.008100000000000003, 0.07290000000000003, 0.06561000000000003,
        0.059049000000000025, 0.05314410000000002, 0.04782969000000002, 0.043046721000000024,
    ]  # fmt: skip


def test_functions():
    assert ride(lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), 3) == [0.1, 0.05, 0.1 * (1 / 3)]
    assert ride(lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), 3) == [0.1, 0.05, 0.025]
    with pytest.raises(ValueError, match="Expected 1 lr_lambdas"):
        lr_scheduler.LambdaLR(optimizer(), [lambda e: 1, lambda e: 2])

    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, epoch):
            return self.rate**epoch

    state = lr_scheduler.LambdaLR(optimizer(), Decay(0.5)).state_dict()
    assert state["lr_lambdas"] == [{"rate": 0.5}]
    assert lr_scheduler.LambdaLR(optimizer(), lambda e: 1).state_dict()["lr_lambdas"] == [None]


def test_state_layout():
    assert lr_scheduler.StepLR(optimizer(), 3).state_dict() == {
        "step_size": 3, "gamma": 0.1, "base_lrs": [0.1], "last_epoch": 0, "_step_count": 1, "_is_initial": False,
        "_get_lr_called_within_step": False, "_last_lr": [0.1],
    }  # fmt: skip


def test_own_schedule():
    class Rising(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base * (1 + self.last_epoch) for base in self.base_lrs]

    assert ride(Rising, 3) == [0.1, 0.2, 0.1 * 3]


def test_warnings_and_refusals():
    o = optimizer()
    schedule = lr_scheduler.StepLR(o, 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer(), 3, last_epoch=3)
    with pytest.raises(TypeError, match="not an Optimizer"):
        lr_scheduler.StepLR(3, 3)
    with pytest.raises(ValueError):
        lr_scheduler.SequentialLR(o, [schedule], [3])


def test_tensor_learning_rate():
    o = optimizer(torch.tensor(0.5))
    schedule = lr_scheduler.StepLR(o, 1, gamma=0.5)
    rate = o.param_groups[0]["lr"]
    o.step()
    schedule.step()
    assert rate is o.param_groups[0]["lr"] and rate.item() == 0.25 and schedule.base_lrs[0].item() == 0.5
