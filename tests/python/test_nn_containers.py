"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

import pytest

import flambeau as torch
from flambeau import nn


def kinds(modules):
    return [type(m).__name__ for m in modules]


def test_sequential_as_a_list():
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert kinds(s[0:2]) == ["ReLU", "Tanh"] and isinstance(s[-1], nn.Sigmoid) and isinstance(s[0:2], nn.Sequential)
    assert len(s + s) == 6 and len(s * 2) == 6 and len(2 * s) == 6
    s.insert(1, nn.GELU()).append(nn.ELU()).extend([nn.SiLU()])
    assert kinds(s) == ["ReLU", "GELU", "Tanh", "Sigmoid", "ELU", "SiLU"]
    assert isinstance(s.pop(0), nn.ReLU)
    del s[0:2]
    s[0] = nn.ReLU()
    assert kinds(s) == ["ReLU", "ELU", "SiLU"] and list(s._modules) == ["0", "1", "2"]
    s += nn.Sequential(nn.Tanh())
    s *= 2
    assert len(s) == 8


def test_sequential_keeps_given_names():
    from collections import OrderedDict

    s = nn.Sequential(OrderedDict(first=nn.Linear(1, 1), second=nn.ReLU()))
    assert list(s.state_dict()) == ["first.weight", "first.bias"] and list(s[:1]._modules) == ["first"]
    assert s.first is s[0]


@pytest.mark.parametrize(
    "act, error",
    [
        (lambda: nn.Sequential(nn.ReLU())[5], IndexError),
        (lambda: nn.ModuleList()[0], IndexError),
        (lambda: nn.Sequential(nn.ReLU()).insert(9, nn.ReLU()), IndexError),
        (lambda: nn.Sequential(nn.ReLU()).pop(7), IndexError),
        (lambda: nn.Sequential()["a"], TypeError),
        (lambda: nn.Sequential() + 3, ValueError),
        (lambda: nn.Sequential(nn.ReLU()) * 0, ValueError),
        (lambda: nn.Sequential(nn.ReLU()) * 1.5, TypeError),
        (lambda: nn.Sequential(3), TypeError),
        (lambda: nn.ModuleList([3]), TypeError),
        (lambda: nn.ModuleList().extend(3), TypeError),
        (lambda: nn.ModuleList()(2), NotImplementedError),
        (lambda: nn.ModuleDict([("a",)]), ValueError),
        (lambda: nn.ModuleDict(3), TypeError),
        (lambda: nn.ModuleDict()["q"], KeyError),
        (lambda: nn.ParameterDict()["q"], AttributeError),
        (lambda: nn.ParameterDict({3: torch.ones(1)}), TypeError),
    ],
)
def test_refusals(act, error):
    with pytest.raises(error):
        act()


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n  (2): ReLU()\n)"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    layers.insert(0, nn.Tanh())
    assert kinds(layers) == ["Tanh", "Linear", "Linear", "ReLU"] and kinds(layers[1:]) == ["Linear", "Linear", "ReLU"]
    layers += [nn.ELU()]
    del layers[0]
    assert kinds(layers + [nn.Tanh()]) == ["Linear", "Linear", "ReLU", "ELU", "Tanh"]
    assert kinds(layers) == ["Linear", "Linear", "ReLU", "ELU"] and isinstance(layers.pop(-1), nn.ELU)


def test_module_dict():
    d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 2)})
    assert list(d) == ["a", "b"] and "a" in d and isinstance(d.pop("a"), nn.ReLU)
    d.update({"z": nn.Tanh()})
    d["q"] = nn.ELU()
    assert list(d.keys()) == ["b", "z", "q"] and len(d) == 3 and kinds(d.values()) == ["Linear", "Tanh", "ELU"]
    d.clear()
    assert repr(d) == "ModuleDict()"


def test_parameter_list():
    values = nn.ParameterList([nn.Parameter(torch.ones(2, 3)), torch.ones(3), 5])
    assert repr(values) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Parameter containing: [torch.float32 of size 3]\n    (2): Object of type: int\n)"
    )
    assert list(values.state_dict()) == ["0", "1"]
    values.append(torch.zeros(1))
    values += [3.0]
    assert len(values) == 5 and values[-1] == 3.0 and isinstance(values[3], nn.Parameter) and len(values[1:]) == 4
    values[0] = torch.zeros(2)
    assert values[0].shape == (2,)


def test_parameter_dict():
    d = nn.ParameterDict({"b": nn.Parameter(torch.ones(2, 3)), "a": torch.ones(1).double(), "c": 3})
    assert list(d) == ["a", "b", "c"] and list(d.state_dict()) == ["a", "b"] and d.get("zz", 4) == 4
    assert repr(d) == (
        "ParameterDict(\n    (a): Parameter containing: [torch.DoubleTensor of size 1]\n"
        "    (b): Parameter containing: [torch.FloatTensor of size 2x3]\n    (c): Object of type: int\n)"
    )
    assert d.popitem() == ("c", 3)
    merged = d | nn.ParameterDict({"y": torch.ones(1)})
    assert list(merged) == ["a", "b", "y"] and list(d.copy()) == ["a", "b"]
    assert isinstance(d.setdefault("x", torch.ones(1)), nn.Parameter) and len(d) == 3
    d.clear()
    assert len(d) == 0
