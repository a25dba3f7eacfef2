"""What was found by giving the package odd and bad input: each stands for a kind of fault."""

import math

import numpy as np
import pytest

import flambeau as torch


def gradient(change, n=3):
    """The gradient of the sum of what ``change`` gives for 2, 3, 4, ..."""
    x = (torch.arange(float(n)) + 2).requires_grad_(True)
    change(x * 1).sum().backward()
    return x.grad.tolist()


def test_in_place_operations_on_their_own_memory_have_right_gradients():
    # d/dx of 2 x^2, of 2 x^3 + x, and of 1.
    assert gradient(lambda y: 2 * y.mul_(y)) == [8.0, 12.0, 16.0]
    assert gradient(lambda y: y.addcmul_(y, y)) == [5.0, 7.0, 9.0]
    assert gradient(lambda y: y.div_(y)) == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)

    def whole_by_first(y):
        return y.mul_(y[0])

    # x0^2 + x0 x1 + x0 x2
    assert gradient(whole_by_first) == [4.0 + 3.0 + 4.0, 2.0, 2.0]

    def by_the_one_before(y):
        y[1:].mul_(y[:-1])
        return y

    # x0 + x0 x1 + x1 x2
    assert gradient(by_the_one_before) == [1.0 + 3.0, 2.0 + 4.0, 3.0]


def test_in_place_operations_on_their_own_memory_twice_differentiated():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.mul_(y).mul_(y[0])
    # x0^3 ... : y is (x0^2, x1^2) times x0^2.
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [4 * 8.0 + 2 * 2 * 9.0, 2 * 3 * 4.0]
    (second,) = torch.autograd.grad(first[1], x)
    assert second.tolist() == [2 * 3 * 2 * 2.0, 2 * 4.0]


def test_clamp_ends_that_the_dtype_does_not_hold():
    x = torch.tensor([0, 5, 200], dtype=torch.uint8)
    assert x.clamp(-1, 300).tolist() == [0, 5, 200]
    assert x.clamp_min(-1).tolist() == [0, 5, 200]
    assert torch.nn.functional.hardtanh(x).tolist() == [0, 1, 1]
    assert torch.tensor([1, -100], dtype=torch.int8).clamp(-300, 300).tolist() == [1, -100]
    for ends in ((None, -1), (300, None)):
        with pytest.raises(RuntimeError, match="representable range"):
            x.clamp(*ends)


def test_negative_numbers_in_unsigned_tensors_are_twos_complements():
    x = torch.zeros(3, dtype=torch.uint8)
    assert x.fill_(-1).tolist() == [255, 255, 255]
    assert torch.tensor([-1, -255], dtype=torch.uint8).tolist() == [255, 1]
    assert torch.full((2,), -2, dtype=torch.uint8).tolist() == [254, 254]
    assert x.masked_fill(x > 0, -2).tolist() == [254, 254, 254]
    for bad in (256, -256):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.fill_(bad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_zero_remainders_take_the_divisors_sign(dtype):
    x = torch.tensor([-1.0, 2.0, -0.0, 5.5], dtype=dtype)
    y = torch.tensor([1.0, -1.0, 3.0, -2.0], dtype=dtype)
    assert [math.copysign(1, r) for r in (x % y).tolist()] == [1, -1, 1, -1]
    assert (x % y).tolist() == [0.0, 0.0, 0.0, -0.5]


def test_bernoulli_in_place_takes_a_number():
    x = torch.empty(2000)
    assert 400 < x.bernoulli_(0.3).sum().item() < 800
    assert x.bernoulli_(1.0).sum().item() == 2000
    with pytest.raises(RuntimeError, match=r"\[0, 1\]"):
        x.bernoulli_(2.0)


def test_functions_with_outputs_that_are_no_tensors():
    seen = []

    class Labelled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return "name", x * 2, 3, x + 1

        @staticmethod
        def backward(ctx, *grads):
            seen.append(grads)
            return grads[1] * 2 + grads[3]

    x = torch.ones(2, requires_grad=True)
    name, double, three, more = Labelled.apply(x)
    assert (name, three) == ("name", 3)
    (double + 10 * more).sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]
    assert [g is None for g in seen[0]] == [True, False, True, False]


def test_hooks_keep_the_dtype():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad.double())
    with pytest.raises(RuntimeError, match="changed the type"):
        (x * 2).sum().backward()


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError):
        torch.ones(3) + 2**70
    with pytest.raises(ValueError, match="Overflow"):
        torch.manual_seed(2**64)


@pytest.mark.parametrize("what", [None, {}, object()])
def test_what_is_no_number_is_named(what):
    with pytest.raises(RuntimeError, match=f"Could not infer dtype of {type(what).__name__}"):
        torch.tensor([what])


def test_reversed_arrays_are_copied():
    a = np.arange(4.0)
    t = torch.from_numpy(a[::-1])
    assert t.tolist() == [3.0, 2.0, 1.0, 0.0]
    t.zero_()
    assert a.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_normalize_zeros_of_half_precision():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert torch.nn.functional.normalize(torch.zeros(2, 3, dtype=dtype)).abs().sum().item() == 0.0


def test_addmm_does_not_grow():
    for shape in ((1, 3, 4), (2, 3, 4), (5, 3, 4)):
        with pytest.raises(RuntimeError, match="does not broadcast to the product's shape"):
            torch.addmm(torch.zeros(shape), torch.ones(3, 5), torch.ones(5, 4))
    with pytest.raises(RuntimeError, match="does not broadcast to the product's shape"):
        torch.addmm(torch.zeros(3, 4), torch.ones(1, 5), torch.ones(5, 4))


def test_inverting_floats_is_a_type_error():
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match="invert"):
        ~torch.ones(2)


def test_tensors_one_by_one():
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4, 5])
    assert torch.cartesian_prod(a, b).tolist() == [[x, y] for x in (1, 2) for y in (3, 4, 5)]
    assert torch.block_diag(a, b).tolist() == [[1, 2, 0, 0, 0], [0, 0, 3, 4, 5]]


def test_take_along_dim_counts_from_the_end():
    x = torch.arange(6).view(2, 3)
    assert torch.take_along_dim(x, torch.tensor([[-1], [0]]), 1).tolist() == [[2], [3]]
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        torch.take_along_dim(x, torch.tensor([[-4]]), 1)


def test_the_mean_of_nothing_is_nan():
    for function in (torch.var_mean, torch.std_mean):
        for result in function(torch.ones(2, 0), 1):
            assert [math.isnan(r) for r in result.tolist()] == [True, True]
        assert function(torch.tensor([1.0, 3.0]))[1].item() == 2.0


def test_the_processor_is_one_device_whatever_its_index():
    assert torch.tensor([1, 2], device="cpu:1").tolist() == [1, 2]
    assert (torch.ones(2).to("cpu:1") + torch.ones(2, device="cpu:3")).tolist() == [2.0, 2.0]
    assert torch.ones(2).copy_(torch.tensor([5.0, 6.0], device="cpu:1")).tolist() == [5.0, 6.0]
    assert torch.zeros(2, device="cpu:7").device == torch.device("cpu")


@pytest.mark.parametrize("pad", [(1, -4), (-4, 1), (-4, 5), (1, -5), (2**62, 2**62)])
def test_padding_cuts_off_no_more_than_there_is(pad):
    with pytest.raises(RuntimeError, match="size"):
        torch.nn.functional.pad(torch.ones(3), pad)


def test_interpolation_to_impossible_sizes_is_refused_at_once():
    image = torch.ones(1, 1, 4, 4)
    for factor in (math.inf, math.nan, 1e15):
        with pytest.raises(RuntimeError):
            torch.nn.functional.interpolate(image, scale_factor=factor)
    with pytest.raises(RuntimeError):
        torch.nn.functional.interpolate(torch.ones(1, 1, 4), scale_factor=1e14, mode="linear")


def test_an_imaginary_part_is_never_dropped_unsaid():
    x = torch.zeros(3)
    for write in (lambda: x.fill_(1j), lambda: x.__setitem__(0, 1 + 2j), lambda: x.__setitem__([0, 1], 2j)):
        with pytest.raises(RuntimeError, match="imaginary part"):
            write()
    with pytest.raises(RuntimeError, match="alpha must not be a complex"):
        torch.add(x, 1, alpha=1j)
    assert x.tolist() == [0.0, 0.0, 0.0]
    assert x.fill_(1 + 0j).tolist() == [1.0, 1.0, 1.0]


def test_singular_matrices_have_a_determinant():
    zero = torch.zeros(2, 2)
    assert torch.linalg.det(zero).item() == 0.0
    sign, size = torch.linalg.slogdet(torch.tensor([[0.0, 1.0], [0.0, 2.0]]))
    assert (sign.item(), size.item()) == (0.0, -math.inf)
    lower, upper = torch.linalg.lu(torch.tensor([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]))[1:]
    assert lower.tolist() == [[1.0, 0.0], [0.0, 1.0]] and upper.tolist() == [[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]
    small = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1e-30, 0.0]])
    assert torch.linalg.lu(small)[2].tolist()[1] == [0.0, torch.tensor(1e-30).item(), 0.0]
    assert math.isnan(torch.linalg.det(torch.full((2, 2), math.nan)).item())
    # Columns that depend on one another further on, in blocks of their own: all finite, and P L U is the matrix.
    wide = torch.ones(70, 70, dtype=torch.complex128)
    p, lower, upper = torch.linalg.lu(wide)
    assert torch.equal(p @ lower @ upper, wide)


def test_memory_of_a_numpy_array_does_not_grow_away_from_it():
    array = np.ones(3)
    x = torch.from_numpy(array)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    x.resize_(2).fill_(5)
    assert array.tolist() == [5.0, 5.0, 1.0]


def test_tensors_of_one_element_are_numbers_in_lists():
    one = torch.tensor([1.0])
    assert torch.tensor([one, 2]).tolist() == [1.0, 2.0]
    assert torch.tensor([one, torch.tensor([[3.0]])]).shape == (2,)
    assert torch.Tensor(torch.tensor(4)).tolist() == 4


def test_a_list_of_more_than_numbers_indexes_as_a_tuple():
    x = torch.arange(24).reshape(2, 3, 4)
    assert x[[[0, 1], [1, 2]]].tolist() == [[4, 5, 6, 7], [20, 21, 22, 23]]
    assert x[[slice(0, 1), 1]].tolist() == [[4, 5, 6, 7]]
    assert x[[..., 1]].tolist() == [[1, 5, 9], [13, 17, 21]]
    assert x[[torch.tensor(0), 1]].tolist() == [4, 5, 6, 7]
    assert x[[1, 0]].shape == (2, 3, 4) and x[[True, False]].shape == (1, 3, 4)
    y = torch.zeros(2, 2)
    y[[[0, 1], [1, 0]]] = 5
    assert y.tolist() == [[0.0, 5.0], [5.0, 0.0]]


def test_errors_of_products_say_what_would_fit():
    for call in (lambda: torch.ones(2, 3) @ torch.ones(2, 4), lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 4))):
        with pytest.raises(RuntimeError, match=r"\(2x3 and 2x4\): .*last dimension \(3\) must equal .* \(2\)$"):
            call()
    with pytest.raises(RuntimeError, match=r"\(3\) must equal .* \(4\); shapes \[5, 2, 3\] and \[5, 4, 2\]$"):
        torch.ones(5, 2, 3) @ torch.ones(5, 4, 2)
    with pytest.raises(RuntimeError, match=r"\(3\) must equal the weight's \(2\)"):
        torch.nn.functional.linear(torch.ones(1, 3), torch.ones(4, 2))
    with torch.autocast("cpu", enabled=False) as cast:
        assert cast is not None


def test_errors_have_pytorchs_classes():
    eye, windows = torch.eye(2), torch.ones(1, 1, 4, 4)
    for kind, call in [
        (NotImplementedError, lambda: torch.linalg.inv(eye.half())),
        (NotImplementedError, lambda: torch.linalg.svd(eye.int())),
        (NotImplementedError, lambda: torch.fft.fft(eye.half())),
        (TypeError, lambda: torch.fft.rfft(eye * 1j)),
        (TypeError, lambda: eye.imag),
        (TypeError, lambda: torch.istft(eye, 2)),
        (ValueError, lambda: torch.nn.functional.lp_pool2d(windows, 0, 2)),
        (RuntimeError, lambda: torch.nn.functional.one_hot(torch.tensor(2), -5)),
        (RuntimeError, lambda: torch.device("cpu", -1)),
    ]:
        with pytest.raises(kind):
            call()


def test_statistics_of_large_numbers_stay_finite():
    F = torch.nn.functional
    x = torch.tensor([[1e30, -1e30, 0.0]])
    torch.testing.assert_close(F.layer_norm(x, (3,)), torch.tensor([[1.2247449, -1.2247449, 0.0]]))
    torch.testing.assert_close(F.batch_norm(x[:, :2].t(), None, None, training=True), torch.tensor([[1.0], [-1.0]]))
    torch.testing.assert_close(F.batch_norm(x[None], None, None, training=True), F.layer_norm(x, (3,))[None])


def test_gradient_of_logaddexp_of_equal_infinities_is_finite():
    inf = float("inf")
    a = torch.tensor([-inf], requires_grad=True)
    torch.logaddexp(torch.logaddexp(a, torch.tensor([-inf])), torch.tensor([2.0])).backward()
    assert a.grad.tolist() == [0.0]
    b = torch.tensor([1.0], requires_grad=True)
    torch.logaddexp(b, b.detach()).backward()
    assert b.grad.tolist() == [0.5]


def test_views_of_leaves_made_without_gradients_are_not_written_with_them():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = x[:2]
        view.mul_(2)
    with pytest.raises(RuntimeError, match="view was created in no_grad mode"):
        view.mul_(2)
    assert x.tolist() == [2, 2, 1]


def test_inference_tensors_are_not_saved_for_backward():
    with torch.inference_mode():
        i = torch.ones(3)
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * i
    (x + i).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_functions_are_pickled_by_where_they_are_found():
    import pickle

    functions = [torch.nn.functional.linear, torch.add]
    assert pickle.loads(pickle.dumps(functions)) == functions


def test_contains_takes_numbers_and_tensors():
    assert 1 in torch.ones(2) and torch.tensor(3.0) not in torch.ones(2)
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in torch.ones(2)


def test_products_of_integers_are_weighted_by_integers():
    a = torch.ones(2, 2, dtype=torch.int32)
    assert torch.equal(torch.addmm(a, a, a, beta=1.5), torch.full((2, 2), 3, dtype=torch.int32))
