"""Modules that learn shapes, share code or hold state; values measured on PyTorch 2.15 stand as numbers."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn


def test_lazy_modules_learn_their_shape():
    lazy = nn.LazyLinear(3)
    assert isinstance(lazy.weight, nn.parameter.UninitializedParameter)
    with pytest.raises(RuntimeError, match="shape of an uninitialized"):
        lazy.weight.shape  # noqa: B018
    weight = lazy.weight
    assert lazy(torch.ones(2, 5)).shape == (2, 3)
    assert type(lazy) is nn.Linear and lazy.weight is weight and lazy.in_features == 5
    assert not nn.parameter.is_lazy(weight)


def test_lazy_modules_load_what_has_a_shape():
    ready, lazy = nn.Conv2d(4, 2, 3), nn.LazyConv2d(2, 3)
    lazy.load_state_dict(ready.state_dict())
    assert torch.equal(lazy.weight, ready.weight)
    copied = pickle.loads(pickle.dumps(copy.deepcopy(nn.LazyBatchNorm1d())))
    assert nn.parameter.is_lazy(copied.running_mean)


def test_printed_forms():
    assert repr(nn.Conv2d(4, 6, 3, 2, padding=1, groups=2, bias=False, padding_mode="reflect")) == (
        "Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False, padding_mode=reflect)"
    )
    assert repr(nn.LSTM(3, 4, 2, batch_first=True)) == "LSTM(3, 4, num_layers=2, batch_first=True)"
    assert repr(nn.MaxPool2d(3)) == "MaxPool2d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=False)"


def test_recurrent_weights_have_their_names():
    names = list(nn.LSTM(3, 4, proj_size=2, bidirectional=True).state_dict())
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    assert names == [f"{kind}_l0{side}" for side in ("", "_reverse") for kind in kinds]
    net = nn.GRU(3, 4)
    net.weight_ih_l0 = nn.Parameter(torch.zeros(12, 3))
    assert net._flat_weights[0] is net.weight_ih_l0
    with pytest.raises(ValueError, match="proj_size"):
        nn.GRU(3, 4, proj_size=2)


def test_packed_sequences_go_there_and_back():
    rows = [torch.arange(2.0), torch.arange(3.0), torch.arange(1.0)]
    packed = nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.data.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 2.0]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    back = nn.utils.rnn.unpack_sequence(packed)
    assert [row.tolist() for row in back] == [row.tolist() for row in rows]
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        nn.utils.rnn.pack_sequence(rows)


def test_padding_on_either_side():
    rows = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    assert nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=9).tolist() == [[1, 2, 3], [4, 9, 9]]
    assert nn.utils.rnn.pad_sequence(rows, True, 9, "left").tolist() == [[1, 2, 3], [9, 9, 4]]


def test_sync_batch_norm_refuses_to_train():
    norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(2)))[0]
    assert isinstance(norm, nn.SyncBatchNorm)
    with pytest.raises(ValueError, match="accelerator"):
        norm(torch.ones(3, 2))
    assert norm.eval()(torch.ones(3, 2)).shape == (3, 2)


def test_parametrized_weights():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    before = layer.weight.detach()
    layer.weight.sum().backward()
    assert layer.parametrizations.weight.original0.grad.shape == (4, 1)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and torch.allclose(layer.weight, before)


def test_fused_batch_norm_gives_the_same():
    torch.manual_seed(0)
    linear, norm = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    norm.running_mean.uniform_()
    norm.running_var.uniform_(0.5, 2.0)
    x = torch.randn(5, 3)
    assert torch.allclose(nn.utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-6)
