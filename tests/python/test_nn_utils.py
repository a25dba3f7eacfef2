"""Clipping, and parameters as a vector."""

import math

import pytest

import flambeau as torch
from flambeau import nn


def with_grads(*grads):
    params = []
    for grad in grads:
        param = nn.Parameter(torch.zeros(len(grad)))
        param.grad = torch.tensor(grad)
        params.append(param)
    return params


def test_clip_by_norm():
    params = with_grads([3.0, 0.0], [4.0])
    assert nn.utils.clip_grad_norm_(params, 1.0).item() == pytest.approx(5.0)
    assert params[0].grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-6) and params[1].grad.item() == pytest.approx(
        0.8
    )
    kept = with_grads([0.3], [0.4])
    nn.utils.clip_grad_norm_(kept, 1.0)
    assert kept[0].grad.item() == pytest.approx(0.3)


@pytest.mark.parametrize("order, wanted", [(1.0, 7.0), (math.inf, 4.0), (3.0, (27 + 64) ** (1 / 3))])
def test_total_norm(order, wanted):
    assert nn.utils.get_total_norm([p.grad for p in with_grads([3.0, 0.0], [-4.0])], order).item() == pytest.approx(
        wanted
    )


def test_norm_does_not_overflow():
    assert nn.utils.clip_grad_norm_(with_grads([3e30], [4e30]), 1.0).item() == pytest.approx(5e30)


def test_nonfinite_norm():
    params = with_grads([math.nan, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert math.isnan(nn.utils.clip_grad_norm_(params, 1.0).item())


def test_clip_without_gradients():
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0.0
    assert nn.utils.clip_grad_norm_([nn.Parameter(torch.ones(2))], 1.0).item() == 0.0


def test_clip_by_value():
    params = with_grads([-3.0, 0.25, 9.0])
    nn.utils.clip_grad_value_(params, 0.5)
    assert params[0].grad.tolist() == [-0.5, 0.25, 0.5]


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and torch.equal(vector[6:], layer.bias)
    nn.utils.vector_to_parameters(torch.arange(9.0), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]] and layer.bias.tolist() == [6.0, 7.0, 8.0]


def test_a_module_with_the_weight_norm_hook_is_copied_and_pickled():
    import copy
    import pickle
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    twin = pickle.loads(pickle.dumps(copy.deepcopy(module)))
    with torch.no_grad():
        twin.weight_g.mul_(2)
    x = torch.ones(1, 2)
    torch.testing.assert_close(twin(x) - twin.bias, 2 * (module(x) - module.bias))
    twin(x).sum().backward()
    assert twin.weight_v.grad is not None and module.weight_v.grad is None
