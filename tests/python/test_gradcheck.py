"""gradcheck and gradgradcheck: what passes and what does not is what does in PyTorch 2.15."""

import pytest

import flambeau as torch
from flambeau.autograd import Function, gradcheck, gradgradcheck
from flambeau.autograd.gradcheck import GradcheckError

MODES = [False, True]


@pytest.fixture
def x():
    return torch.tensor([-0.7, 0.4, 1.9], dtype=torch.float64, requires_grad=True)


@pytest.fixture
def z():
    return torch.tensor([0.3 - 1.2j, -0.8 + 0.5j], dtype=torch.complex128, requires_grad=True)


class Half(Function):
    """x * x, with half its gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Drifting(Function):
    """2 x, whose gradient is a little different each time."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Drifting.calls += 1
        return g * (2 + Drifting.calls * 1e-7)


class Bias(Function):
    """2 x, whose gradient is not zero for a gradient of zero."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 + 1e-7


class Pair(Function):
    """Two outputs, whose backward wants both gradients."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if a is None or b is None:
            raise RuntimeError("both, please")
        return a * 2 + b * 3


@pytest.mark.parametrize("fast", MODES)
def test_real(x, fast):
    assert gradcheck(torch.sin, x, fast_mode=fast)
    assert gradcheck(lambda x: (x * x, x.exp().sum()), (x,), fast_mode=fast, check_grad_dtypes=True)
    assert gradcheck(lambda x, y: x * y, (x, x.detach().clone()), fast_mode=fast)
    assert gradcheck(lambda x: (torch.ones(2), x.exp()), (x,), fast_mode=fast)
    assert gradcheck(torch.sum, torch.zeros(0, dtype=torch.float64, requires_grad=True), fast_mode=fast)


@pytest.mark.parametrize("fast", MODES)
def test_complex(x, z, fast):
    for function in (torch.sin, torch.abs, torch.view_as_real, lambda z: z * z.conj() + z**3, lambda z: z.real * z.imag):
        assert gradcheck(function, z, fast_mode=fast, check_forward_ad=True)
    assert gradcheck(lambda x: torch.complex(x, x * x) ** 2, x, fast_mode=fast, check_forward_ad=True)


@pytest.mark.parametrize("fast", MODES)
def test_other_ways(x, z, fast):
    for given in (x, z):
        assert gradcheck(
            lambda v: (v * v, v.sin() * 2), given, fast_mode=fast, check_forward_ad=True, check_batched_grad=True,
            check_batched_forward_grad=True,
        )  # fmt: skip


@pytest.mark.parametrize("fast", MODES)
def test_wrong_derivatives(x, fast):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Half.apply, x, fast_mode=fast)
    assert not gradcheck(Half.apply, x, fast_mode=fast, raise_exception=False)


def test_a_gradient_that_drifts(x):
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Drifting.apply, x)
    assert gradcheck(Drifting.apply, x, nondet_tol=1e-3)


def test_a_gradient_that_is_not_linear(x):
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Bias.apply, x)


def test_undefined_gradients(x):
    def both(x):
        a, b = Pair.apply(x)
        return (a + b, a * b)

    assert gradcheck(both, x)
    with pytest.raises(RuntimeError, match="both, please"):
        gradcheck(Pair.apply, x)


def test_outputs_without_a_derivative(x):
    assert gradcheck(lambda x: x.argmax(), x)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach(), x)


def test_inputs_that_do_not_fit(x):
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, torch.ones(3))
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(torch.sin, x.detach().float().requires_grad_(), raise_exception=False)
    with pytest.raises(AssertionError, match="at least one of"):
        gradcheck(torch.sin, x, check_backward_ad=False)
    assert gradcheck(torch.sin, x, check_backward_ad=False, check_forward_ad=True)


def test_the_input_is_left_as_it_was(x):
    before, version = x.tolist(), x._version
    y = x.exp()
    gradcheck(torch.sin, x)
    assert x.tolist() == before and x._version == version
    y.sum().backward()


@pytest.mark.parametrize("fast", MODES)
def test_second_derivatives(x, z, fast):
    for given in (x, z):
        assert gradgradcheck(lambda v: v.sin() * v, given, fast_mode=fast)
        assert gradgradcheck(lambda v: v.exp(), given, fast_mode=fast, check_fwd_over_rev=True)
    assert gradgradcheck(lambda x: (x.exp(), x.sum()), x, gen_non_contig_grad_outputs=True, fast_mode=fast)
    seed = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(torch.sin, x, seed, fast_mode=fast, check_batched_grad=True)
    with pytest.raises(GradcheckError):
        gradgradcheck(lambda x: HalfSecond.apply(x), x, fast_mode=fast)


class HalfSecond(Function):
    """x * x, whose derivative has half its own derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x + x.detach())
