"""Anomaly mode, and what errors of changed tensors say. Behaviour is PyTorch 2.15's."""

import warnings

import pytest

import flambeau as torch
from flambeau.autograd import Function, detect_anomaly, set_detect_anomaly


class Nan(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


class Bad(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise ValueError("mine")


def caught(error, text, run):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(error, match=text):
            run()
    return [str(w.message) for w in seen if "has been enabled" not in str(w.message)]


@pytest.fixture
def a():
    return torch.ones(3, requires_grad=True)


def test_nan_is_an_error_that_shows_the_line(a):
    def run():
        with detect_anomaly():
            y = Nan.apply(a * 2)  # the line
            assert type(y.grad_fn.metadata["traceback_"]) is list
            y.sum().backward()

    (warning,) = caught(RuntimeError, "Function 'NanBackward' returned nan values in its 0th output.", run)
    assert warning.startswith("Error detected in NanBackward. Traceback of forward call that caused the error:\n")
    assert warning.rstrip().endswith("y = Nan.apply(a * 2)  # the line")
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()


def test_an_operation_of_the_table(a):
    def run():
        with detect_anomaly():
            y = (a * 0).sqrt() * 0
            y.sum().backward()

    (warning,) = caught(RuntimeError, "Function 'SqrtBackward0' returned nan values in its 0th output.", run)
    assert "(a * 0).sqrt() * 0" in warning


def test_recorded_outside(a):
    y = Nan.apply(a)

    def run():
        with detect_anomaly():
            y.sum().backward()

    (warning,) = caught(RuntimeError, "returned nan", run)
    assert warning.startswith("Error detected in NanBackward. No forward pass information available.")


def test_without_the_search_for_nan(a):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        with detect_anomaly(check_nan=False):
            assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
            Nan.apply(a).sum().backward()
    assert a.grad.isnan().all()


def test_errors_of_the_users_own(a):
    def run():
        with set_detect_anomaly(True):
            Bad.apply(a).sum().backward()

    (warning,) = caught(ValueError, "mine", run)
    assert "Error detected in BadBackward." in warning and "Bad.apply(a).sum()" in warning


def test_a_derivative_names_what_it_is_the_derivative_of(a):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return Nan.apply(g * 2 * ctx.saved_tensors[0])

    def run():
        with set_detect_anomaly(True):
            (g,) = torch.autograd.grad(Square.apply(a).sum(), a, create_graph=True)
            assert set(g.grad_fn.metadata) == {"traceback_", "parent_"}
            g.sum().backward()

    first, second = caught(RuntimeError, "NanBackward", run)
    assert first.startswith("Error detected in NanBackward.")
    assert second.startswith("\n\nPrevious calculation was induced by SquareBackward. Traceback of forward call")


def test_a_changed_tensor_is_named_with_the_line_that_changed_it(a):
    def run():
        with set_detect_anomaly(True):
            t = a * 2
            y = t * t  # needs t
            t.add_(1)  # changes t
            y.sum().backward()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError) as error:
            run()
    text = str(error.value)
    assert "modified by an inplace operation" in text and "saved for MulBackward0, is at version 1; expected version 0" in text
    assert "It was changed by add_ at:" in text and "t.add_(1)  # changes t" in text
    assert "y = t * t  # needs t" in str(seen[0].message)


def test_a_changed_tensor_without_anomaly_mode(a):
    t = a * 2
    y = t.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\[float32 \[3\]\], which is output 0 of ExpBackward0.*set_detect_anomaly"):
        y.sum().backward()


def test_switch_without_a_block():
    set_detect_anomaly(True, check_nan=False)
    try:
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    finally:
        set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
