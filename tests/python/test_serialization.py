"""save and load in PyTorch's format. What PyTorch itself wrote is in the tests of the io crate."""

import io
import pickle
import zipfile
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn, optim


def through(obj, **settings):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, **settings)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name):
    x = torch.arange(5).to(getattr(torch, name))
    y = through(x)
    assert y.dtype == x.dtype and bytes(y.untyped_storage()._to_bytes()) == bytes(x.untyped_storage()._to_bytes())


def test_containers_and_plain_values():
    obj = {
        "list": [1, 2.5, None, True, "text", b"bytes", 1 + 2j, -(2**80)], "tuple": (1, (2,)), "set": {1, 2},
        "ordered": OrderedDict(a=1), 3: torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu"),
    }  # fmt: skip
    got = through(obj)
    assert got == obj and type(got["ordered"]) is OrderedDict and type(got[3]) is torch.Size


def test_tensors():
    x = torch.arange(12.0).reshape(3, 4)
    got = through(
        {
            "x": x,
            "row": x[1],
            "t": x.t(),
            "empty": torch.empty(0, 3),
            "zero": torch.tensor(7),
            "r": torch.ones(2, requires_grad=True),
        }
    )
    assert torch.equal(got["x"], x) and torch.equal(got["row"], x[1]) and got["t"].stride() == (1, 4)
    assert got["empty"].shape == (0, 3) and got["zero"].shape == () and got["r"].requires_grad
    got["x"][1, 0] = 77
    assert got["row"][0].item() == 77.0 and got["t"][0, 1].item() == 77.0


def test_parameter_and_state_dict():
    p = through(nn.Parameter(torch.ones(2)))
    assert type(p) is nn.Parameter and p.requires_grad
    net = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    state = through(net.state_dict())
    assert state._metadata == net.state_dict()._metadata
    other = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    assert not other.load_state_dict(state).missing_keys and torch.equal(other[0].weight, net[0].weight)


def test_checkpoint_of_an_optimizer(tmp_path):
    p = nn.Parameter(torch.ones(2))
    o = optim.AdamW([p], lr=0.1)
    p.grad = torch.ones(2)
    o.step()
    torch.save({"optimizer": o.state_dict(), "step": 1}, tmp_path / "checkpoint.pt")
    got = torch.load(tmp_path / "checkpoint.pt")
    o.load_state_dict(got["optimizer"])
    assert got["step"] == 1 and o.state[p]["step"].item() == 1.0
    mapped = torch.load(str(tmp_path / "checkpoint.pt"), mmap=True)
    assert torch.equal(mapped["optimizer"]["state"][0]["exp_avg"], got["optimizer"]["state"][0]["exp_avg"])


def test_paths_in_files_are_those_of_pytorch():
    buffer = io.BytesIO()
    torch.save(
        {"a": torch.ones(1), "p": nn.Parameter(torch.ones(1)), "f8": torch.zeros(1, dtype=torch.float8_e5m2)}, buffer
    )
    with zipfile.ZipFile(buffer) as archive:
        data = archive.read("archive/data.pkl")
        assert archive.read("archive/version") == b"3\n" and archive.read("archive/byteorder") == b"little"
        assert archive.read("archive/data/0") == b"\0\0\x80\x3f"
    assert b"flambeau" not in data
    for path in (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_parameter\n",
                 b"ctorch._utils\n_rebuild_tensor_v3\n", b"ctorch\nfloat8_e5m2\n"):  # fmt: skip
        assert path in data


class Runs:
    def __reduce__(self):
        return (print, ("code ran while loading",))


class Mine:
    def __init__(self):
        self.x = torch.ones(1)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("obj", [Runs(), Mine(), print, {"x": [Runs()]}], ids=["reduce", "class", "function", "nested"])
def test_code_is_refused(obj, weights_only, capsys):
    with pytest.raises(pickle.UnpicklingError):
        through(obj, weights_only=weights_only)
    assert capsys.readouterr().out == ""


def test_attributes_of_tensors():
    x = torch.ones(2)
    x.note = "kept"
    assert through(x, weights_only=False).note == "kept" and pickle.loads(pickle.dumps(x)).note == "kept"
    p = nn.Parameter(torch.ones(1))
    p.tag = 3
    assert through(p).tag == 3 and type(through(p)) is nn.Parameter


def test_a_class_cannot_be_smuggled_in():
    from flambeau import _utils

    with pytest.raises(ValueError, match="__class__"):
        _utils._set_state(torch.ones(1), {"__class__": nn.Parameter})


def test_safe_globals():
    from flambeau import serialization

    with serialization.safe_globals([Mine]):
        assert through(Mine()).x.item() == 1.0 and serialization.get_safe_globals() == [Mine]
    assert serialization.get_safe_globals() == []


def test_modules_are_loaded_when_asked_for():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    got = through(net, weights_only=False)
    assert repr(got) == repr(net) and torch.equal(got(torch.ones(1, 2)), net(torch.ones(1, 2)))
    with pytest.raises(pickle.UnpicklingError):
        through(net)


@pytest.mark.parametrize("cut", [1, 10, 100, 400])
def test_a_file_cut_short(cut):
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(100)}, buffer)
    with pytest.raises((RuntimeError, OSError, pickle.UnpicklingError, EOFError)):
        torch.load(io.BytesIO(buffer.getvalue()[:-cut]))


def test_bad_arguments(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing.pt")
    with pytest.raises(AttributeError):
        torch.load(3)
    with pytest.raises(AttributeError):
        torch.save({}, 3)
    with pytest.raises(ValueError, match="file path"):
        torch.load(io.BytesIO(), mmap=True)


def test_map_location():
    for where in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert through(torch.ones(2), map_location=where).tolist() == [1.0, 1.0]
    assert through(torch.ones(2), map_location="meta").is_meta
    with pytest.raises(RuntimeError, match="CUDA"):
        through(torch.ones(2), map_location="cuda")


def test_plain_pickle_of_tensors():
    x = torch.arange(6.0).reshape(2, 3).t()
    y = pickle.loads(pickle.dumps(x))
    assert torch.equal(x, y) and y.stride() == x.stride()
    for value in (torch.float32, torch.Size([1, 2]), torch.device("cpu")):
        assert pickle.loads(pickle.dumps(value)) == value
