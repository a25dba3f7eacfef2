"""Functions and methods that are seldom called, and the names of what flambeau is not. Values are PyTorch's."""

import pytest

import flambeau as torch

F = torch.nn.functional


def close(got, want, tolerance=1e-6):
    return torch.allclose(got, torch.tensor(want, dtype=got.dtype), atol=tolerance)


def test_functions_of_matrices_and_vectors():
    x = torch.tensor([1, 2, 3])
    assert torch.vander(x).tolist() == [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    assert torch.vander(x, 2, True).tolist() == [[1, 1], [1, 2], [1, 3]]
    assert torch.vander(x, 0).shape == (3, 0)
    with pytest.raises(RuntimeError, match="one-dimensional"):
        torch.vander(torch.ones(2, 2))
    m = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    assert torch.frobenius_norm(m, 1).tolist() == [5, 2]
    assert close(torch.frobenius_norm(m, [0, 1], True), [[29**0.5]])
    assert torch.norm_except_dim(m).tolist() == [[5], [2]]
    assert close(torch.norm_except_dim(m, 2, -1), 29**0.5)
    assert torch.ger(torch.ones(2), m[0]).tolist() == [[3, 4], [3, 4]]
    assert torch.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
    assert torch.range(1, 4, dtype=torch.int64).tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="step sign"):
        torch.range(5, 4)
    assert torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 3).tolist() == [0, 0.5, 1]
    with pytest.raises(RuntimeError, match="0-dimensional"):
        torch.linspace(torch.ones(2), 1, 3)
    assert torch.ones(4, 3).narrow(0, torch.tensor(1), 2).shape == (2, 3)


def test_questions():
    assert torch.result_type(torch.ones(2, dtype=torch.int32), torch.tensor(2.5, dtype=torch.float64)) is torch.float64
    assert torch.result_type(torch.ones(2, dtype=torch.bfloat16), torch.ones(1)) is torch.float32
    assert torch.result_type(True, 2) is torch.int64
    assert torch.result_type(1, 2j) is torch.complex64
    assert torch.is_nonzero(torch.tensor([2])) and not torch.is_nonzero(torch.tensor(0))
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch.is_nonzero(torch.ones(2))
    x = torch.ones(2, 3, 4, 5)
    assert x.dim_order() == (0, 1, 2, 3) and x.permute(0, 2, 3, 1).dim_order() == (0, 3, 1, 2)
    assert torch.get_device(x) == -1 and torch.is_same_size(x, x.clone()) and torch.is_signed(x)
    assert torch.cond(torch.tensor(True), lambda v: v + 1, lambda v: v - 1, (torch.ones(2),)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="single-element"):
        torch.cond(torch.ones(2), len, len)


def test_rounding_as_integers_would():
    x = torch.tensor([0.26, 3.0, -4.0, 100.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
    assert close(y.detach(), [0.3, 3.0, -0.3, 25.2])
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0]
    z = torch.fake_quantize_per_channel_affine(
        torch.tensor([[0.26, 3.0], [-4.0, 100.0]]), torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=torch.int32), 0, 0, 255
    )
    assert close(z, [[0.3, 3.0], [-0.2, 50.8]], 1e-5)
    assert close(torch.embedding_renorm_(torch.full((3, 2), 2.0), torch.tensor([0, 2]), 1.0, 1.0), [[0.5, 0.5], [2, 2], [0.5, 0.5]])


def test_a_function_of_each_element():
    x = torch.ones(2, 2)
    assert x.map_(torch.arange(2.0), lambda a, b: a + b) is x and x.tolist() == [[1, 2], [1, 2]]
    assert torch.ones(3, dtype=torch.int64).apply_(lambda a: a + 1.7).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(3, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError, match="map_"):
        x.map_(torch.arange(2), max)


def test_a_file_as_a_tensor(tmp_path):
    path = str(tmp_path / "numbers")
    x = torch.from_file(path, shared=True, size=3)
    assert x.tolist() == [0, 0, 0]
    x[1] = 2
    assert torch.from_file(path, size=3).tolist() == [0, 2, 0]


def test_products_in_groups():
    a, b = torch.arange(12.0).reshape(4, 3), torch.ones(2, 3, 2)
    b[1] = 2
    assert F.grouped_mm(a, b, offs=torch.tensor([1, 4])).tolist() == [[3, 3], [24, 24], [42, 42], [60, 60]]
    assert F.grouped_mm(a.t(), torch.ones(4, 2), offs=torch.tensor([1, 4])).shape == (2, 3, 2)
    with pytest.raises(RuntimeError, match="offsets"):
        F.grouped_mm(a, b)
    eight = lambda t: t.to(torch.float8_e4m3fn)  # noqa: E731
    out = F.scaled_mm(eight(a), eight(b[0]), torch.tensor([2.0]), F.ScalingType.TensorWise, torch.tensor([1.0, 3.0]), F.ScalingType.RowWise)
    assert out.dtype is torch.bfloat16 and out[0].tolist() == [6, 18]
    with pytest.raises(NotImplementedError, match="blocks"):
        F.scaled_mm(eight(a), eight(b[0]), torch.ones(1), F.ScalingType.BlockWise1x32, torch.ones(1), 0)


def test_types_of_torchscript_are_names():
    assert repr(torch.DictType(torch.StringType.get(), torch.TensorType.get())) == "Dict[str, Tensor]"
    assert torch.ListType.ofInts() == torch.ListType(torch.IntType.get()) and torch.IntType.get() is torch.IntType.get()
    assert repr(torch.UnionType([torch.IntType.get(), torch.FloatType.get()])) == "Union[float, int]"
    assert torch.IntType.get().isSubtypeOf(torch.NumberType.get())
    with pytest.raises(TypeError, match="No constructor"):
        torch.IntType()
    with pytest.raises(RuntimeError, match="Could not unify"):
        torch.unify_type_list([torch.IntType.get(), torch.FloatType.get()])


def test_what_flambeau_is_not_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="sparse tensors are not part"):
        torch.sparse_coo_tensor([[0]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="not sparse"):
        torch.ones(2).values()
    with pytest.raises(NotImplementedError, match="TorchScript"):
        torch.Graph()
    with pytest.raises(TypeError):
        torch.ones(2, dtype=torch.qint8)
    assert repr(torch.complex32) == "torch.complex32" and torch.complex32.itemsize == 4
    with pytest.raises((TypeError, RuntimeError)):
        torch.ones(2, layout=torch.sparse_coo)
    assert torch.ones(2).to_dense().tolist() == [1, 1]


def test_out_must_not_be_what_is_read():
    x = torch.arange(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.gather(x, 0, torch.tensor([2, 1, 0]), out=x)
    with pytest.raises(RuntimeError, match="dtype"):
        torch.amax(torch.ones(2, 2), 0, out=torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        torch.ones(4, 3).reshape_as(torch.ones(4, 2))


def test_complex_draws_scans_and_moments():
    torch.manual_seed(0)
    z = torch.randn(3, dtype=torch.complex128)
    want = torch.tensor([1.0896 - 0.2075j, -1.5406 + 0.4019j, -0.7669 - 0.9890j], dtype=torch.complex128)
    assert torch.allclose(z, want, atol=1e-4)
    y = torch.tensor([1 + 2j, 3 - 1j, 0.5j, 2])
    assert y.cumprod(0).tolist() == [1 + 2j, 5 + 5j, -2.5 + 2.5j, -5 + 5j]
    assert torch.allclose(y.logcumsumexp(0)[-1], torch.tensor(3.1251 - 0.6596j), atol=1e-4)
    assert torch.allclose(y.logsumexp(0), torch.tensor(3.1251 - 0.6596j), atol=1e-4)
    assert close(y.var(), 3.2292, 1e-4) and close(y.std(), 1.7970, 1e-4)
    assert torch.var_mean(y, 0)[1].item() == 1.5 + 0.375j
