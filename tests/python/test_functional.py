"""Functions of the main namespace that are written in Python, conversions, types from before dtypes, printing."""

import pytest

import flambeau as torch


def test_broadcasting():
    a, b = torch.broadcast_tensors(torch.ones(2, 1), torch.zeros(3))
    assert a.shape == b.shape == (2, 3) and a.stride() == (1, 0)
    assert torch.broadcast_shapes((2, 1), (3,), 1) == torch.Size([2, 3])
    with pytest.raises(RuntimeError, match="2 and 3"):
        torch.broadcast_shapes((2,), (3,))


def test_einsum():
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
    wanted = a @ b
    assert torch.equal(torch.einsum("ij,jk->ik", a, b), wanted) and torch.equal(
        torch.einsum("ij,jk->ik", [a, b]), wanted
    )
    assert torch.equal(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), wanted)


def test_meshgrid():
    x, y = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    assert x.tolist() == [[0, 0, 0], [1, 1, 1]] and y.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy")[0].shape == (3, 2)


def test_norm():
    x = torch.tensor([[3.0, 4.0], [0.0, 5.0]])
    assert x.norm().item() == pytest.approx(50**0.5) and torch.norm(x, p="fro").item() == pytest.approx(50**0.5)
    assert x.norm(dim=1).tolist() == [5.0, 5.0] and torch.norm(x, 1, 0, True).tolist() == [[3.0, 9.0]]
    assert x.norm(float("inf")).item() == 5.0
    # The singular values' squares add up to 50, their product is 15.
    assert x.norm("nuc").item() == pytest.approx(80**0.5)


@pytest.mark.parametrize(
    "name, dtype",
    [("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("long", "int64"),
     ("int", "int32"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool")],
)  # fmt: skip
def test_casts(name, dtype):
    x = getattr(torch.tensor([0, 1, 2]), name)()
    assert x.dtype == getattr(torch, dtype) and x.tolist() == [0, 1, 1 if name == "bool" else 2]
    assert getattr(x, name)() is x


def test_to():
    x = torch.ones(2, requires_grad=True)
    assert x.to("cpu") is x and x.to(torch.float32) is x and x.to(x) is x and x.to(device=torch.device("cpu")) is x
    assert x.to(torch.float32, copy=True) is not x and x.to("cpu", torch.float32, False, True) is not x
    y = x.to("cpu", torch.float64)
    assert y.dtype == torch.float64 and x.to(dtype=torch.float16).dtype == torch.float16
    y.sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [1.0, 1.0]
    assert x.to(torch.zeros(1, dtype=torch.int64)).dtype == torch.int64
    transposed = torch.ones(2, 3).t().to(torch.float64)
    assert transposed.stride() == (1, 3) and x.to("meta").is_meta
    with pytest.raises(NotImplementedError, match="no data"):
        x.to("meta").to("cpu")
    for bad in (lambda: x.to(1.5), lambda: x.to(torch.float32, 3, 4, 5)):
        with pytest.raises((TypeError, RuntimeError)):
            bad()


def test_type():
    x = torch.ones(2)
    assert x.type() == "torch.FloatTensor" and x.type(torch.int64).type() == "torch.LongTensor"
    assert x.type("torch.DoubleTensor").dtype == torch.float64 and x.type(torch.float32) is x
    assert x.type_as(torch.zeros(1, dtype=torch.int32)).dtype == torch.int32
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.NoTensor")


def test_types_from_before_dtypes():
    assert torch.LongTensor([1, 2]).dtype == torch.int64 and torch.FloatTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ones(2).type(torch.DoubleTensor).dtype == torch.float64


def test_print_options():
    x = torch.tensor([1 / 3, 1000.0])
    before = repr(x)
    try:
        torch.set_printoptions(precision=2, sci_mode=False)
        assert repr(x) == "tensor([   0.33, 1000.00])"
        torch.set_printoptions(profile="full")
        assert "..." not in repr(torch.arange(2000))
    finally:
        torch.set_printoptions(profile="default")
    assert repr(x) == before and "..." in repr(torch.arange(2000))


# Printed by PyTorch 2.15.0 for the same tensors.
PRINTED = [
    (lambda: torch.tensor([1e-5, 1.5]), "tensor([1.0000e-05, 1.5000e+00])"),
    (lambda: torch.tensor([1.0, float("nan"), float("-inf")]), "tensor([1., nan, -inf])"),
    (lambda: torch.tensor([[1, -20], [300, 4]]), "tensor([[  1, -20],\n        [300,   4]])"),
    (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
    (lambda: torch.tensor([1.5], dtype=torch.bfloat16), "tensor([1.5000], dtype=torch.bfloat16)"),
    (lambda: torch.empty(0, 3), "tensor([], size=(0, 3))"),
    (lambda: torch.empty(0, dtype=torch.int64), "tensor([], dtype=torch.int64)"),
    (lambda: torch.tensor(2.5, requires_grad=True), "tensor(2.5000, requires_grad=True)"),
    (lambda: torch.ones(2, requires_grad=True) * 2, "tensor([2., 2.], grad_fn=<MulBackward0>)"),
    (lambda: torch.tensor([1 + 2j, -0.5j]), "tensor([1.+2.0000j, -0.-0.5000j])"),
    (lambda: torch.ones(2, 2, device="meta"), "tensor(..., device='meta', size=(2, 2))"),
    (
        lambda: torch.zeros(2, 2, 2),
        "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])",
    ),
]


@pytest.mark.parametrize("make, text", PRINTED, ids=[text[:30] for _, text in PRINTED])
def test_printing_2_15(make, text):
    assert repr(make()) == text


def test_activations_of_the_table():
    x = torch.tensor([[-2.0, 0.25], [0.75, -0.5]])
    F = torch.nn.functional
    assert F.softshrink(x).tolist() == [[-1.5, 0.0], [0.25, 0.0]] and F.hardshrink(x, 0.6).tolist() == [[-2.0, 0.0], [0.75, 0.0]]
    assert F.prelu(x, torch.tensor([0.5, 0.1])).tolist() == [[-1.0, 0.25], [0.75, pytest.approx(-0.05)]]
    assert torch.nn.PReLU()(x).tolist() == [[-0.5, 0.25], [0.75, -0.125]]


def test_windows_of_one_place():
    windows = torch.signal.windows
    for make in (windows.hann, windows.hamming, windows.blackman, windows.nuttall, windows.bartlett, windows.kaiser, windows.cosine):
        assert make(1).tolist() == [1.0]
        assert make(0).tolist() == []
