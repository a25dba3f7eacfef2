"""`x[...]` and `x[...] = y`, held against NumPy."""

import flambeau as torch
import numpy as np
import pytest

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
MASK = A % 3 == 0

INDICES = {
    "integer": 1, "negative": -1, "two integers": (0, 2), "all integers": (1, 2, 3, 4), "slice": slice(1, None),
    "step": slice(None, None, 2), "beyond the end": slice(1, 100), "empty": slice(2, 1), "negative bounds": slice(-2, -1),
    "slices": (slice(None), slice(1, 3)), "column": (slice(None), 1), "ellipsis": (..., 1), "middle": (0, ..., 2),
    "all": ..., "new axis": None, "new axes": (None, 1, None, ..., None), "nothing": (),
    "list": [0, 1, 1], "lists": ([0, 1], [2, 0]), "list and slice": (slice(None), [0, 2]),
    "apart": ([0, 1], slice(None), [1, 3]), "broadcast lists": ([[0], [1]], [0, 2]), "negative list": [-1],
    "array": np.array([1, 0]), "array of int32": np.array([1, 0], np.int32), "numpy integer": np.int64(1),
    "mask": MASK, "mask of rows": np.array([True, False]), "list of bools": [True, False],
    "mask in the middle": (slice(None), np.array([True, False, True])), "true": True, "false": False,
    "bool and slice": (True, slice(0, 1)), "mask and integer": (0, np.array([True, False, True]), 2),
    "empty list": [], "range": range(2), "integer and list": (1, [0, 2], 3), "list and new axis": ([0, 1], None, 2),
}  # fmt: skip


def ours(index):
    """The index with arrays as tensors."""
    if isinstance(index, tuple):
        return tuple(ours(i) for i in index)
    return torch.from_numpy(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("arrays", ["tensors", "arrays"])
def test_reading(name, arrays):
    index = INDICES[name]
    reference = A[np.array(index, int) if isinstance(index, range) or name == "empty list" else index]
    x = torch.from_numpy(A.copy())
    found = x[ours(index) if arrays == "tensors" else index]
    assert found.shape == reference.shape and found.tolist() == reference.tolist()


@pytest.mark.parametrize("name", [n for n in INDICES if n not in ("range", "empty list")])
@pytest.mark.parametrize("value", ["number", "array"])
def test_writing(name, value):
    index = INDICES[name]
    reference = A.copy()
    x = torch.from_numpy(A.copy())
    if value == "number":
        reference[index] = -1
        x[ours(index)] = -1
    else:
        new = -np.arange(max(reference[index].size, 1), dtype=np.float32)[: reference[index].size].reshape(reference[index].shape)
        if name == "list":  # a place that is named twice keeps the last value
            new[2] = new[1]
        reference[index] = new
        x[ours(index)] = torch.tensor(new)
    assert x.tolist() == reference.tolist()


def test_basic_indices_give_views():
    x = torch.zeros(3, 4)
    assert x[1].data_ptr() == x.data_ptr() + 16 and x[1]._base is x
    x[1:, ::2].add_(1)
    assert x.tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    assert x[[0]].data_ptr() != x.data_ptr()
    assert x[torch.tensor(1)]._base is x


def test_masks_of_bytes_and_tensors_as_bounds():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [1.0, 3.0]
    assert x[torch.tensor(1) :].tolist() == [2.0, 3.0]
    assert x[x > 1.5].tolist() == [2.0, 3.0]


def test_writing_converts_and_broadcasts():
    x = torch.zeros(2, 3, dtype=torch.int64)
    x[0] = torch.tensor([1.9, 2.1, 3.0])
    x[1] = 7
    assert x.tolist() == [[1, 2, 3], [7, 7, 7]]
    x[:, 1] = torch.tensor(5)
    assert x.tolist() == [[1, 5, 3], [7, 5, 7]]
    x[x == 7] = 0
    assert x.tolist() == [[1, 5, 3], [0, 5, 0]]
    x[:, :] = np.array([[9, 9, 9]])
    assert x.tolist() == [[9, 9, 9], [9, 9, 9]]


def test_overlapping_writes():
    x = torch.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_augmented_assignment():
    x = torch.tensor([1.0, 2.0, 3.0])
    x[0] += 5
    x[[1, 2]] *= 2
    assert x.tolist() == [6.0, 4.0, 6.0]


def test_errors():
    x = torch.zeros(3, 4)
    with pytest.raises(IndexError, match="out of (range|bounds)"):
        x[3]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0, 0]
    with pytest.raises(IndexError):
        x[[3]]
    with pytest.raises(IndexError):
        x[torch.tensor([True, False])]
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]
    with pytest.raises(IndexError, match="only integers, slices"):
        x[1.5]
    with pytest.raises(IndexError, match="only integers, slices"):
        x["a"]
    with pytest.raises(IndexError):
        x[torch.tensor([1.0])]
    with pytest.raises(IndexError):
        torch.tensor(1)[0]
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1, 2, 3, 4]
    with pytest.raises(TypeError, match="deleting"):
        del x[0]
    with pytest.raises(RuntimeError):
        x[0] = torch.zeros(3)
    with pytest.raises(TypeError, match="slice indices"):
        x["a":]
    assert x[0].tolist() == [0, 0, 0, 0]


def test_gradients():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    x[1].backward(torch.tensor([1.0, 2.0, 3.0]))
    x[:, [0, 0, 2]].backward(torch.ones(2, 3))
    x[torch.tensor([[True, False, False], [False, False, True]])].backward(torch.tensor([10.0, 20.0]))
    assert x.grad.tolist() == [[12.0, 0.0, 1.0], [3.0, 2.0, 24.0]]
    y = torch.zeros(3)
    z = torch.tensor([1.0, 2.0], requires_grad=True)
    y[1:] = z * 3
    (y * y).backward(torch.ones(3))
    assert z.grad.tolist() == [18.0, 36.0]
