"""Calls of operations from Python: arguments by position and name, defaults, errors, constants."""

import copy
import pickle

import flambeau as torch
import numpy as np
import pytest


@pytest.fixture
def x():
    return torch.tensor([[1.0, -2.0], [3.0, 4.0]])


def test_positional_and_named_arguments(x):
    y = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    expected = (x + y).tolist()
    assert torch.add(x, y).tolist() == expected
    assert torch.add(input=x, other=y).tolist() == expected
    assert x.add(other=y).tolist() == expected
    assert torch.add(x1=x, x2=y).tolist() == expected
    assert torch.add(x, y, alpha=2).tolist() == [[3.0, 0.0], [7.0, 8.0]]


def test_operators_and_their_reflections(x):
    assert (x + 1).tolist() == (1 + x).tolist() == [[2.0, -1.0], [4.0, 5.0]]
    assert (10 - x).tolist() == [[9.0, 12.0], [7.0, 6.0]]
    assert (x - 10).tolist() == [[-9.0, -12.0], [-7.0, -6.0]]
    assert (2 / x).tolist() == [[2.0, -1.0], [pytest.approx(2 / 3), 0.5]]
    assert (x // 2).tolist() == [[0.0, -1.0], [1.0, 2.0]]
    assert (x % 2).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert (2**x).tolist() == [[2.0, 0.25], [8.0, 16.0]]
    assert (x**2).tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert (-x).tolist() == [[-1.0, 2.0], [-3.0, -4.0]]
    assert abs(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (+x) is x
    i = torch.tensor([6, 3])
    assert (i & 2).tolist() == [2, 2] and (i | 1).tolist() == [7, 3] and (i ^ 1).tolist() == [7, 2]
    assert (~i).tolist() == [-7, -4] and (i << 1).tolist() == [12, 6] and (i >> 1).tolist() == [3, 1]


def test_comparisons(x):
    assert (x > 1).tolist() == [[False, False], [True, True]]
    assert (1 < x).tolist() == (x > 1).tolist()
    assert (x == x).dtype is torch.bool
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711  the operator is what is tested


def test_in_place_operators(x):
    same = x
    x += 1
    x *= 2
    assert same is x and x.tolist() == [[4.0, -2.0], [8.0, 10.0]]
    assert x.neg_() is x


def test_foreign_operands():
    class Foreign:
        def __radd__(self, other):
            return "theirs"

        def __eq__(self, other):
            return "equal"

        __hash__ = None

    x = torch.tensor([1.0])
    assert x + Foreign() == "theirs"
    assert (x == Foreign()) == "equal"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "a"


def test_numpy_numbers(x):
    assert (x * np.float32(2)).dtype is torch.float32
    assert (x + np.int64(1)).tolist() == (x + 1).tolist()
    assert torch.mul(x, np.float64(0.5)).tolist() == (x * 0.5).tolist()


def test_zero_dimensional_tensors_as_numbers(x):
    two = torch.tensor(2)
    assert x.transpose(torch.tensor(0), 1).tolist() == x.T.tolist()
    assert (x * two).dtype is torch.float32
    assert int(two) == 2 and float(two) == 2.0 and [0, 1, 5][two] == 5 and complex(two) == 2 + 0j
    assert bool(two)


def test_varargs_of_sizes():
    assert torch.zeros(2, 3).shape == torch.zeros((2, 3)).shape == torch.zeros([2, 3]).shape == (2, 3)
    assert torch.zeros(3).shape == (3,) and torch.zeros(()).shape == ()
    x = torch.zeros(6)
    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view(size=(2, 3)).shape == (2, 3)
    assert x.view(-1).shape == (6,)
    assert torch.zeros(torch.Size([1, 2])).shape == (1, 2)


def test_factory_keywords():
    x = torch.zeros(2, dtype=torch.int32, device="cpu", layout=torch.strided, pin_memory=False)
    assert x.dtype is torch.int32
    assert torch.ones(1, requires_grad=True).requires_grad
    assert torch.zeros(1, dtype=float).dtype is torch.float32
    with pytest.raises(RuntimeError, match="requires_grad|gradients"):
        torch.ones(1, dtype=torch.int64, requires_grad=True)
    with pytest.raises(RuntimeError, match="cuda"):
        torch.zeros(1, device="cuda")


def test_out(x):
    out = torch.empty(0)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == (x + 1).tolist()
    with pytest.raises(TypeError, match="out"):
        torch.add(x, 1, out=3)


def test_wrong_calls_say_what_would_fit(x):
    with pytest.raises(TypeError, match=r"neg\(\) takes 1 positional"):
        x.neg(3)
    with pytest.raises(TypeError, match=r"argument 'other' \(position 2\) must be Tensor, not str"):
        torch.mul(x, "a")
    with pytest.raises(TypeError, match="missing 1 required positional arguments: \"other\""):
        torch.mul(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        torch.neg(x, colour=1)
    with pytest.raises(TypeError, match="multiple values for argument 'other'"):
        torch.mul(x, 1, other=2)
    with pytest.raises(TypeError, match="must be int, not bool|must be int, not float|combination"):
        x.transpose(True, 0.5)
    with pytest.raises(TypeError):
        torch.neg(1.0)
    with pytest.raises(TypeError):
        torch.neg()


def test_overload_errors_list_the_signatures(x):
    with pytest.raises(TypeError) as raised:
        x.sum("rows")
    text = str(raised.value)
    assert "invalid combination of arguments" in text and "str" in text and "tuple of ints" in text


def test_error_classes(x):
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x + torch.zeros(3)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.transpose(0, 5)
    with pytest.raises(RuntimeError, match="^view size is not compatible") as raised:
        x.T.view(4)
    assert raised.value.__notes__ == ["view: input of shape [2, 2] and strides [1, 2], asked for [4]"]
    x + 1  # everything still works
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    with pytest.raises(RuntimeError):
        torch.empty(1 << 60)


def test_functions_have_names_and_documentation():
    assert torch.add.__name__ == "add" and torch.Tensor.add_.__name__ == "add_"
    assert "Tensor input, Tensor other" in torch.mul.__doc__
    assert pickle.loads(pickle.dumps(torch.neg)) is torch.neg


def test_methods_bind(x):
    negate = x.neg
    assert negate().tolist() == (-x).tolist()
    assert torch.Tensor.neg(x).tolist() == (-x).tolist()
    assert list(map(torch.neg, [x]))[0].tolist() == (-x).tolist()


def test_dtypes():
    assert repr(torch.float32) == "torch.float32" and torch.float is torch.float32 and torch.long is torch.int64
    assert torch.float16.is_floating_point and torch.complex64.is_complex and not torch.uint8.is_signed
    assert torch.float64.itemsize == 8
    assert torch.complex64.to_real() is torch.float32 and torch.float64.to_complex() is torch.complex128
    assert copy.deepcopy(torch.int8) is torch.int8
    assert torch.tensor([1.0]).dtype is torch.float32


def test_default_dtype():
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype is torch.float64 and torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_dtype(torch.int64)


def test_finfo_and_iinfo():
    # Values of IEEE 754 and of PyTorch 2.15's finfo.
    assert torch.finfo(torch.float32).eps == 2.0**-23 and torch.finfo(torch.float32).max == 3.4028234663852886e38
    assert torch.finfo(torch.bfloat16).max == 3.3895313892515355e38 and torch.finfo(torch.bfloat16).eps == 0.0078125
    assert torch.finfo(torch.float16).tiny == 6.103515625e-05 and torch.finfo(torch.float64).bits == 64
    assert torch.finfo(torch.float32).resolution == 1e-06
    assert torch.iinfo(torch.int8).max == 127 and torch.iinfo(torch.int64).min == -(2**63)
    assert torch.iinfo(torch.uint64).max == 2**64 - 1
    with pytest.raises(TypeError):
        torch.finfo(torch.int8)


def test_devices():
    cpu = torch.device("cpu")
    assert repr(cpu) == "device(type='cpu')" and str(cpu) == "cpu" and cpu.type == "cpu" and cpu.index is None
    assert torch.device("cuda", 1) == torch.device("cuda:1") and hash(torch.device("cpu")) == hash(cpu)
    assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
    assert torch.zeros(1, device=cpu).device == cpu
    with pytest.raises(RuntimeError, match="abacus"):
        torch.device("abacus")


def test_sizes():
    s = torch.zeros(2, 3).shape
    assert repr(s) == "torch.Size([2, 3])" and s == (2, 3) and s.numel() == 6 and isinstance(s, tuple)
    assert type(s + (4,)) is torch.Size and type(s[:1]) is torch.Size and s[-1] == 3
    assert type(s * 2) is torch.Size and (s * 2) == (2, 3, 2, 3)
    assert hash(s) == hash((2, 3)) and {s: 1}[(2, 3)] == 1
    with pytest.raises(TypeError):
        torch.Size(["a"])
    with pytest.raises(IndexError):
        s[2]


def test_generators():
    a, b = torch.Generator().manual_seed(5), torch.Generator()
    b.manual_seed(5)
    assert a.initial_seed() == 5
    assert torch.rand(3, generator=a).tolist() == torch.rand(3, generator=b).tolist()
    state = a.get_state()
    first = torch.rand(3, generator=a).tolist()
    a.set_state(state)
    assert torch.rand(3, generator=a).tolist() == first
    assert state.dtype is torch.uint8 and state.shape == (5056,)
    assert torch.Generator().manual_seed(-1).initial_seed() == 2**64 - 1


def test_tensor_of_data():
    assert torch.tensor(3).dtype is torch.int64 and torch.tensor(True).dtype is torch.bool
    assert torch.tensor(1j).dtype is torch.complex64
    assert torch.tensor([1, 2.5]).dtype is torch.float32
    assert torch.tensor([True, 2]).dtype is torch.int64
    assert torch.tensor([]).shape == (0,) and torch.tensor([[]]).shape == (1, 0)
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.tensor((1, 2)).tolist() == [1, 2] and torch.tensor(range(3)).tolist() == [0, 1, 2]
    assert torch.tensor([1.7], dtype=torch.int32).tolist() == [1]
    assert torch.tensor([torch.tensor(1.5), 2]).tolist() == [1.5, 2.0]
    assert torch.tensor(2**63 - 1).item() == 2**63 - 1
    x = torch.tensor([1.0], requires_grad=True)
    assert x.requires_grad and x.is_leaf


def test_tensor_of_bad_data():
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 3\)"):
        torch.tensor([[1, 2], [3, 4, 5]])
    with pytest.raises(TypeError, match="not a sequence"):
        torch.tensor([[1, 2], 3])
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        torch.tensor(["a"])
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor([300], dtype=torch.uint8)
    with pytest.raises(ValueError, match="Overflow"):
        torch.tensor(2**70)
    nested = []
    nested.append(nested)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(nested)


def test_item_and_tolist():
    assert torch.tensor(2.5).item() == 2.5 and torch.tensor([[7]]).item() == 7
    assert torch.tensor([True]).item() is True
    assert torch.tensor(5).tolist() == 5 and torch.zeros(2, 0).tolist() == [[], []]
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.tensor([1, 2]).item()
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="only one element"):
        float(torch.tensor([1.0, 2.0]))


def test_attributes(x):
    assert x.ndim == x.dim() == 2 and x.numel() == 4 and x.size() == x.shape and x.size(-1) == 2
    assert x.stride() == (2, 1) and x.T.stride() == (1, 2) and x.stride(0) == 2
    assert x.element_size() == 4 and x.nbytes == 16 and x.itemsize == 4 and x.storage_offset() == 0
    assert x.is_contiguous() and not x.T.is_contiguous() and x.is_cpu and not x.is_cuda and x.layout is torch.strided
    assert x.data_ptr() == x.T.data_ptr() != 0
    assert len(x) == 2
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))
    with pytest.raises(IndexError):
        x.size(2)
    before = x._version
    x.neg_()
    assert x._version == before + 1


def test_data_and_detach(x):
    x.requires_grad_()
    d = x.detach()
    assert not d.requires_grad and d.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="leaf"):
        x.neg_()
    version = x._version
    x.data.neg_()
    assert x._version == version
    d.neg_()
    assert x._version == version + 1
    x.data = torch.tensor([5.0])
    assert x.tolist() == [5.0] and x.shape == (1,)


def test_grad_assignment(x):
    x.requires_grad_()
    x.grad = torch.ones(2, 2)
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="different size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = torch.ones(2, 2, dtype=torch.float64)
    with pytest.raises(TypeError, match="Tensor or None"):
        x.grad = 3
    x.grad = torch.zeros(2, 2)
    del x.grad
    assert x.grad is None


def test_storages(x):
    s = x.untyped_storage()
    assert s.nbytes() == len(s) == 16 and s.data_ptr() == x.data_ptr() and s == x.T.untyped_storage()
    y = torch.empty(0)
    y.set_(s, 0, (4,), (1,))
    assert y.tolist() == [1.0, -2.0, 3.0, 4.0]
    y.neg_()
    assert x.tolist() == [[-1.0, 2.0], [-3.0, -4.0]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        y.set_(s, 2, (4,), (1,))
    with pytest.raises(RuntimeError):
        y.set_(s, -1, (1,), (1,))
    clone = copy.deepcopy(s)
    assert clone != s and clone.tolist() == s.tolist()


def test_resize():
    x = torch.tensor([1.0, 2.0])
    assert x.resize_(3, 2) is x and x.shape == (3, 2) and x.tolist()[0] == [1.0, 2.0]
    x.resize_((1,))
    assert x.tolist() == [1.0]
    with pytest.raises(RuntimeError):
        x.resize_(-1)


def test_threads_setting():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    with pytest.raises(RuntimeError):
        torch.set_num_threads(0)


def test_legacy_constructor():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor().shape == (0,)
    assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor(torch.Size([2])).shape == (2,)
