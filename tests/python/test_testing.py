"""testing.assert_close."""

import pytest

import flambeau as torch
from flambeau.testing import assert_close


@pytest.mark.parametrize(
    "actual, expected",
    [
        (torch.ones(2), torch.ones(2) + 1e-6), (1.0, 1.0 + 1e-9), ([torch.ones(1), 2], [torch.ones(1), 2]),
        ({"a": torch.tensor([1, 2])}, {"a": torch.tensor([1, 2])}), (None, None),
        (torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bfloat16) * 1.0078125),
    ],
)  # fmt: skip
def test_close(actual, expected):
    assert_close(actual, expected)


@pytest.mark.parametrize(
    "actual, expected, text",
    [
        (torch.ones(3), torch.tensor([1.0, 1.0, 2.0]), "Mismatched elements: 1 / 3 (33.3%)"),
        (torch.ones(2, 2), torch.tensor([[1.0, 1.0], [1.5, 1.0]]), "0.5 at index (1, 0)"),
        (torch.ones(2), torch.ones(3), "attribute 'shape'"), (torch.ones(1), torch.ones(1).double(), "attribute 'dtype'"),
        (torch.tensor(float("nan")), torch.tensor(float("nan")), "Scalars are not close"), ({"a": 1}, {"b": 1}, "keys"),
        ([1], [1, 2], "length"), ([torch.ones(1)], [torch.zeros(1)], "item [0]"), (torch.ones(1), 1, "one is a tensor"),
        (torch.tensor([2**62]), torch.tensor([2**62 + 1]), "Mismatched elements"),
    ],
)  # fmt: skip
def test_not_close(actual, expected, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert text in str(caught.value)


def test_settings():
    assert_close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
    assert_close(torch.ones(1), torch.ones(1).double(), check_dtype=False)
    assert_close(torch.ones(1), torch.ones(1) * 1.05, rtol=0.1, atol=0.0)
    with pytest.raises(ValueError):
        assert_close(1, 1, rtol=0.1)
    with pytest.raises(AssertionError, match="mine"):
        assert_close(1, 2, msg="mine")
