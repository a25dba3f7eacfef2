"""Checkpoints: what is computed again, when, and what is refused. Counts and values are PyTorch 2.15's."""

import contextlib

import pytest

import flambeau as torch
from flambeau.utils.checkpoint import (
    CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_debug_enabled, set_checkpoint_early_stop,
)  # fmt: skip

FORMS = [True, False]
# d/dx of 2 exp(sin x) at 1, 2, 3
SLOPES = pytest.approx([2.5068, -2.0662, -2.2801], abs=1e-4)


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Steps:
    """2 exp(sin x), which notes how far it comes."""

    def __init__(self):
        self.log = ""

    def __call__(self, x):
        self.log += "a"
        y = x.sin()
        self.log += "b"
        z = y.exp()
        self.log += "c"
        w = z * 2
        self.log += "d"
        return w


def changing(first, then):
    """A function that is ``first`` in its first call and ``then`` later."""
    calls = []

    def function(x):
        calls.append(1)
        return first(x) if len(calls) == 1 else then(x)

    return function


def test_reentrant_computes_all_again(x):
    f = Steps()
    y = checkpoint(f, x, use_reentrant=True)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    y.sum().backward()
    assert f.log == "abcdabcd" and x.grad.tolist() == SLOPES


def test_early_stop(x):
    f = Steps()
    y = checkpoint(f, x, use_reentrant=False)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert f.log == "abcdab" and x.grad.tolist() == SLOPES


def test_without_early_stop(x):
    f = Steps()
    with set_checkpoint_early_stop(False):
        y = checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    checkpoint(f, x, use_reentrant=False, early_stop=False).sum().backward()
    assert f.log == "abcdabcd" * 2
    assert x.grad.tolist() == pytest.approx([2 * v for v in (2.5068, -2.0662, -2.2801)], abs=1e-3)


def test_kept_graphs_compute_again(x):
    f = Steps()
    s = checkpoint(f, x, use_reentrant=False).sum()
    s.backward(retain_graph=True)
    s.backward()
    assert f.log == "abcdabab"


def test_two_outputs_two_backwards(x):
    log = []

    def two(x):
        a = x.sin().exp()
        log.append(1)
        b = a.cos().exp()
        log.append(2)
        return a, b

    a, b = checkpoint(two, x, use_reentrant=False)
    log.clear()
    torch.autograd.grad(a.sum(), x, retain_graph=True)
    assert log == [1]
    torch.autograd.grad(b.sum(), x)
    assert log == [1, 1]


def test_grad_and_second_derivatives(x):
    f = Steps()
    (g,) = torch.autograd.grad(checkpoint(f, x, use_reentrant=False).sum(), x)
    assert g.tolist() == SLOPES
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == pytest.approx([-1.2748, -1.8275, 0.9661], abs=1e-4)


def test_reentrant_refuses_grad(x):
    with pytest.raises(RuntimeError, match="incompatible with .grad()"):
        torch.autograd.grad(checkpoint(Steps(), x, use_reentrant=True).sum(), x)
    with pytest.raises(RuntimeError, match="incompatible with .grad()"):
        checkpoint(Steps(), x, use_reentrant=True).sum().backward(inputs=[x])


def test_inputs_without_gradients(x):
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(Steps(), x.detach(), use_reentrant=True).requires_grad
    assert not checkpoint(Steps(), x.detach(), use_reentrant=False).requires_grad
    w = torch.ones(3, requires_grad=True)
    checkpoint(lambda x: (x * w).sin(), x.detach(), use_reentrant=False).sum().backward()
    assert w.grad.tolist() == pytest.approx([0.5403, -0.8323, -2.97], abs=1e-4)
    with torch.no_grad():
        assert not checkpoint(Steps(), x, use_reentrant=False).requires_grad


@pytest.mark.parametrize("reentrant", FORMS)
def test_random_state(x, reentrant):
    drawn = []

    def drop(x):
        drawn.append(torch.rand(3))
        return x * drawn[-1]

    torch.manual_seed(0)
    y = checkpoint(drop, x, use_reentrant=reentrant)
    state = torch.get_rng_state()
    y.sum().backward()
    assert torch.equal(state, torch.get_rng_state())
    assert len(drawn) == 2 and torch.equal(drawn[0], drawn[1]) and torch.equal(x.grad, drawn[0])


@pytest.mark.parametrize("reentrant", FORMS)
def test_autocast(x, reentrant):
    seen, layer = [], torch.nn.Linear(3, 3)

    def function(x):
        y = layer(x)
        seen.append(y.dtype)
        return y.float().sin()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = checkpoint(function, x, use_reentrant=reentrant)
    y.sum().backward()
    assert seen == [torch.bfloat16] * 2


def test_nested(x):
    layer, calls = torch.nn.Linear(3, 3), []
    for p in layer.parameters():
        torch.nn.init.constant_(p, 0.5)

    def inner(x):
        calls.append(1)
        return layer(x).sin()

    def outer(x):
        y = checkpoint(inner, x, use_reentrant=False)
        return checkpoint(inner, y, use_reentrant=False).exp()

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    assert len(calls) == 6
    assert x.grad.tolist() == pytest.approx([-2.0519] * 3, abs=1e-4)
    assert layer.weight.grad.flatten().tolist() == pytest.approx([-1.7095, -3.0775, -4.4454] * 3, abs=1e-3)


@pytest.mark.parametrize("reentrant", FORMS)
def test_sequential(x, reentrant):
    layer = torch.nn.Linear(3, 3)
    for p in layer.parameters():
        torch.nn.init.constant_(p, 0.5)
    net = torch.nn.Sequential(layer, torch.nn.ReLU(), layer, torch.nn.Tanh())
    checkpoint_sequential(net, 2, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0055] * 3, abs=1e-4)
    with pytest.raises(ValueError, match="foo"):
        checkpoint_sequential(net, 2, x, use_reentrant=reentrant, foo=1)
    with pytest.raises(ValueError):
        checkpoint_sequential(net, 8, x, use_reentrant=reentrant)


def test_contexts(x):
    log = []

    @contextlib.contextmanager
    def block(name):
        log.append("+" + name)
        yield
        log.append("-" + name)

    def contexts():
        class Again(contextlib.ExitStack):
            def __enter__(self):
                log.append("+again")

            def __exit__(self, *_):
                log.append("-again")

        return block("first"), Again()

    checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert log == ["+first", "-first", "+again", "-again"]


def test_containers_keywords_and_other_results(x):
    def function(x, pair, *, scale):
        return x * pair["b"] * scale, None, 3

    w = torch.ones(3, requires_grad=True)
    y, nothing, three = checkpoint(function, x, {"b": w}, scale=2, use_reentrant=False)
    assert nothing is None and three == 3
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
    assert checkpoint(lambda x: x, x, use_reentrant=False) is x
    y, nothing, three = checkpoint(lambda x: (x * 2, None, 3), x, use_reentrant=True)
    assert nothing is None and three == 3


def test_decorator(x):
    @checkpoint(use_reentrant=False)
    def function(x):
        """A text."""
        return x.sin().exp() * 2

    function(x).sum().backward()
    assert x.grad.tolist() == SLOPES and function.__doc__ == "A text."


def test_fewer_or_more_tensors_the_second_time(x):
    short, long = (lambda x: x.sin()), (lambda x: x.sin().exp())
    with pytest.raises(CheckpointError, match="during forward: 2\nNumber of tensors saved during recomputation: 1"):
        checkpoint(changing(long, short), x, use_reentrant=False).sum().backward()
    checkpoint(changing(short, long), x, use_reentrant=False).sum().backward()
    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        checkpoint(changing(short, long), x, use_reentrant=False, early_stop=False).sum().backward()


def test_other_shapes_the_second_time(x):
    def pair():
        return changing(lambda x: x.sin().exp().sum(), lambda x: torch.cat([x, x]).sin().exp().sum())

    with pytest.raises(CheckpointError) as error:
        checkpoint(pair(), x, use_reentrant=False).backward()
    assert "have different metadata" in str(error.value) and "tensor at position 1:" in str(error.value)
    with pytest.raises(RuntimeError, match="must match the size"):
        checkpoint(pair(), x, use_reentrant=False, determinism_check="none").backward()
    for call in (lambda f: checkpoint(f, x, use_reentrant=False, debug=True), debugged):
        with pytest.raises(CheckpointError, match="Tensors saved during the recomputation:\n  0: .*test_checkpoint.py"):
            call(pair() if call is not debugged else (pair(), x)).backward()


def debugged(given):
    function, x = given
    with set_checkpoint_debug_enabled(True):
        return checkpoint(function, x, use_reentrant=False)


def test_refused_arguments(x):
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(Steps(), x, use_reentrant=False, determinism_check="foo")
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        checkpoint(Steps(), x, use_reentrant=True, k=3)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(Steps(), x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(Steps(), x)


def test_errors_in_the_second_run_leave_all_usable(x):
    def fail(x):
        raise KeyError("again")

    with pytest.raises(KeyError, match="again"):
        checkpoint(changing(lambda x: x.sin().exp(), fail), x, use_reentrant=False).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_hooks_inside(x):
    def function(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t,), lambda t: t[0]):
            return x.sin().exp()

    (g,) = torch.autograd.grad(checkpoint(function, x, use_reentrant=False).sum(), x)
    assert (2 * g).tolist() == SLOPES


def test_nothing_between_is_kept():
    sizes = []


    x = torch.ones(1000, requires_grad=True)
    y = checkpoint(lambda x: x.sin().exp().cos(), x, use_reentrant=False)
    node = y.grad_fn
    while node.name() != "torch::autograd::AccumulateGrad":
        sizes.append(sum(size for _, size in node._saved_memory()))
        node = node.next_functions[0][0]
    assert sizes == [0, 0, 0]
