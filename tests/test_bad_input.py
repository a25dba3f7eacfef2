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
