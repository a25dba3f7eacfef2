"""Memory shared with NumPy and, by DLPack, with whatever speaks it."""

import gc
import weakref

import flambeau as torch
import numpy as np
import pytest

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_both_ways(name):
    a = np.array([[0, 1, 2], [3, 4, 5]]).astype(name)
    t = torch.from_numpy(a)
    assert t.dtype is getattr(torch, name) and t.tolist() == a.tolist()
    b = t.numpy()
    assert b.dtype == a.dtype and np.shares_memory(a, b) and (b == a).all()


def test_memory_is_shared():
    a = np.zeros(4, np.float32)
    t = torch.from_numpy(a)
    a[1] = 5
    assert t.tolist() == [0, 5, 0, 0]
    t.add_(1)
    assert a.tolist() == [1, 6, 1, 1]
    b = t.numpy()
    b[0] = 9
    assert t[0].item() == 9


def test_strides_are_kept():
    a = np.arange(24, dtype=np.int32).reshape(4, 6)
    t = torch.from_numpy(a[1:, ::2].T)
    assert t.tolist() == a[1:, ::2].T.tolist() and t.stride() == (2, 6)
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.T.numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]] and x.T.numpy().strides == (4, 8)
    assert torch.from_numpy(np.zeros((0, 3))).shape == (0, 3) and torch.from_numpy(np.array(3.0)).shape == ()


def test_read_only_arrays_are_never_written_through():
    a = np.arange(3, dtype=np.float32)
    a.flags.writeable = False
    t = torch.from_numpy(a)
    view = t[1:]
    t.add_(1)
    assert a.tolist() == [0, 1, 2] and t.tolist() == [1, 2, 3] and view.tolist() == [2, 3]
    u = torch.from_numpy(a)
    assert not u.numpy().flags.writeable
    b = np.frombuffer(b"\x01\x02\x03", dtype=np.uint8)
    v = torch.from_numpy(b)
    v.fill_(0)
    assert b.tolist() == [1, 2, 3]


def test_broadcast_arrays_are_not_written_over_themselves():
    t = torch.from_numpy(np.broadcast_to(np.float32(1), (3,)))
    with pytest.raises(RuntimeError, match="single memory location"):
        t.add_(1)


def test_what_cannot_be_shared():
    a = np.arange(6, dtype=np.float32)
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(a.astype(">f4"))
    packed = np.zeros(3, dtype=[("flag", "u1"), ("value", "<f4")])
    with pytest.raises(ValueError, match="multiple of the element byte size|aligned"):
        torch.from_numpy(packed["value"])
    with pytest.raises(TypeError, match="str"):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError, match="object"):
        torch.from_numpy(np.array([None]))
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1])


def test_what_cannot_be_shared_is_copied_by_tensor():
    a = np.arange(6, dtype=np.float32)
    assert torch.tensor(a[::-1]).tolist() == a[::-1].tolist()
    assert torch.as_tensor(a.astype(">f4")).tolist() == a.tolist()
    packed = np.array([(1, 2.5), (0, 3.5)], dtype=[("flag", "u1"), ("value", "<f4")])
    assert torch.tensor(packed["value"]).tolist() == [2.5, 3.5]


def test_tensor_copies_and_as_tensor_shares():
    a = np.zeros(2, np.float32)
    copied, shared = torch.tensor(a), torch.as_tensor(a)
    converted = torch.as_tensor(a, dtype=torch.float64)
    a[:] = 7
    assert copied.tolist() == [0, 0] and shared.tolist() == [7, 7] and converted.tolist() == [0, 0]
    x = torch.tensor([1.0])
    assert torch.as_tensor(x) is x


def test_numpy_numbers_and_lists_of_arrays():
    # The dtypes are those of PyTorch 2.15.
    assert torch.tensor(np.float32(1.5)).dtype is torch.float32
    assert torch.tensor(np.int16(3)).dtype is torch.int16
    assert torch.tensor([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).dtype is torch.float64
    assert torch.tensor(np.bool_(True)).item() is True


def test_numpy_refuses_what_autograd_would_miss():
    x = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1.0] and x.numpy(force=True).tolist() == [1.0]
    with pytest.raises(TypeError, match="unsupported ScalarType"):
        torch.tensor([1.0]).to(torch.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        torch.zeros(2, device="meta").numpy()


def test_numpy_functions_take_tensors():
    x = torch.tensor([1.0, 4.0])
    assert np.asarray(x).tolist() == [1.0, 4.0] and np.array(x, dtype=np.int64).tolist() == [1, 4]
    assert np.sqrt(x).tolist() == [1.0, 2.0]


def test_memory_lives_as_long_as_somebody_uses_it():
    a = np.arange(1000, dtype=np.float64)
    base = weakref.ref(a)
    t = torch.from_numpy(a)
    del a
    gc.collect()
    assert base() is not None and t[999].item() == 999
    del t
    gc.collect()
    assert base() is None
    x = torch.tensor([1.0, 2.0, 3.0])
    b = x.numpy()
    del x
    gc.collect()
    assert b.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", [d for d in DTYPES if d != "bool"])
def test_dlpack_with_numpy(name):
    a = np.array([[0, 1, 2], [3, 4, 5]]).astype(name)
    t = torch.from_dlpack(a)
    assert t.dtype is getattr(torch, name) and t.tolist() == a.tolist() and t.data_ptr() == a.ctypes.data
    b = np.from_dlpack(t)
    assert np.shares_memory(a, b) and b.tolist() == a.tolist()


def test_dlpack_between_tensors():
    for dtype in (torch.bfloat16, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2):
        x = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).to(dtype)
        y = torch.from_dlpack(x.T)
        assert y.dtype is dtype and y.data_ptr() == x.data_ptr() and y.tolist() == x.T.tolist()
    x = torch.tensor([1.0, 2.0])
    y = torch.from_dlpack(x, copy=True)
    assert y.data_ptr() != x.data_ptr()
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_capsules_are_used_once():
    x = torch.tensor([1.0])
    capsule = x.__dlpack__()
    assert torch.from_dlpack(capsule).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="only once"):
        torch.from_dlpack(capsule)
    x.__dlpack__(max_version=(1, 0))  # nobody takes it: freed with its capsule


def test_dlpack_keeps_read_only_memory():
    a = np.arange(3, dtype=np.float32)
    a.flags.writeable = False
    t = torch.from_dlpack(a) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else torch.from_numpy(a)
    t.add_(1)
    assert a.tolist() == [0, 1, 2] and t.tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        torch.from_numpy(a).__dlpack__()
    with pytest.raises(BufferError, match="gradient"):
        torch.tensor([1.0], requires_grad=True).__dlpack__()


def test_long_ranges_of_integers():
    for start, stop, step in ((0, 1 << 18, 1), (-7, 300_001, 3), (500_000, -3, -2), (5, 5 + 70_001, 1)):
        assert np.array_equal(torch.arange(start, stop, step).numpy(), np.arange(start, stop, step))
