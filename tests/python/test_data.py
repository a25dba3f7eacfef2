"""Data sets, samplers, collation and the loader. Orders named 2.15 are PyTorch 2.15.0's from the same seed."""

import collections

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils import data


def test_orders_2_15():
    torch.manual_seed(0)
    assert list(data.RandomSampler(range(10))) == [6, 9, 0, 7, 3, 5, 4, 2, 1, 8]
    assert list(data.RandomSampler(range(5), num_samples=8)) == [1, 4, 2, 3, 0, 2, 0, 1]


def test_loader_order_2_15():
    torch.manual_seed(0)
    loader = data.DataLoader(torch.arange(10), batch_size=4, shuffle=True)
    assert [batch.tolist() for batch in loader] == [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5]]
    assert torch.rand(1).item() == pytest.approx(0.30742281675338745)


def test_orders_of_a_generator_2_15():
    g = torch.Generator().manual_seed(3)
    assert list(data.RandomSampler(range(5), True, 10, generator=g)) == [1, 3, 2, 2, 0, 0, 0, 0, 1, 4]
    parts = data.random_split(range(10), [0.5, 0.3, 0.2], g)
    assert [part.indices for part in parts] == [[4, 1, 3, 9, 0], [2, 5, 7], [8, 6]]
    assert list(data.SubsetRandomSampler([5, 6, 7, 9], g)) == [5, 6, 9, 7]
    assert list(data.WeightedRandomSampler([0.1, 0.5, 0.4], 8, generator=g)) == [1, 1, 1, 2, 0, 1, 1, 2]


def batches(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(
    "settings, wanted, length",
    [
        (dict(batch_size=3), [[0, 1, 2], [3, 4, 5], [6]], 3),
        (dict(batch_size=3, drop_last=True), [[0, 1, 2], [3, 4, 5]], 2),
        (dict(batch_size=None), list(range(7)), 7),
        (dict(sampler=[3, 1, 2], batch_size=2), [[3, 1], [2]], 2),
        (dict(batch_sampler=[[1, 2], [3]]), [[1, 2], [3]], 2),
    ],
)
def test_batches(settings, wanted, length):
    loader = data.DataLoader(torch.arange(7), **settings)
    assert batches(loader) == wanted == batches(loader) and len(loader) == length


def test_iterable():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 5

    assert batches(data.DataLoader(Stream(), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert batches(data.DataLoader(Stream(), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    assert batches(data.DataLoader(Stream() + Stream(), batch_size=4))[1] == [4, 0, 1, 2]
    assert len(data.DataLoader(Stream(), batch_size=2)) == 3
    with pytest.raises(ValueError, match="expected unspecified shuffle"):
        data.DataLoader(Stream(), shuffle=True)


def test_data_sets():
    x = torch.arange(6.0).view(3, 2)
    rows = data.TensorDataset(x, torch.arange(3))
    assert len(rows) == 3 and rows[1][0].tolist() == [2.0, 3.0] and rows[1][1].item() == 1
    both = rows + rows
    assert len(both) == 6 and both[-1][1].item() == 2 and both[4][1].item() == 1
    few = data.Subset(rows, [2, 0])
    assert [few[i][1].item() for i in range(len(few))] == [2, 0]
    (first, second) = next(iter(data.DataLoader(few, batch_size=4)))
    assert second.tolist() == [2, 0] and first.shape == (2, 2)
    stacked = data.StackDataset(a=[1, 2], b=[3, 4])
    assert stacked[1] == {"a": 2, "b": 4} and len(stacked) == 2


def test_collate():
    Point = collections.namedtuple("Point", "x y")
    c = data.default_collate
    assert c([1, 2]).dtype == torch.int64 and c([1.0, 2.0]).dtype == torch.float64 and c([True]).dtype == torch.bool
    assert c(["a", "b"]) == ["a", "b"] and c([b"a"]) == [b"a"]
    assert c([np.ones(2, np.float32), np.zeros(2, np.float32)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert c([np.float32(1), np.float32(2)]).dtype == torch.float32
    nested = c([{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}])
    assert nested["a"].tolist() == [1, 2] and [t.tolist() for t in nested["b"]] == [[1, 3], [2, 4]]
    point = c([Point(1, "p"), Point(2, "q")])
    assert isinstance(point, Point) and point.x.tolist() == [1, 2] and list(point.y) == ["p", "q"]
    pair = c([(torch.ones(1), 3), (torch.zeros(1), 4)])
    assert isinstance(pair, list) and pair[0].tolist() == [[1.0], [0.0]]
    assert isinstance(c([collections.OrderedDict(a=1)]), collections.OrderedDict)


@pytest.mark.parametrize(
    "batch, error",
    [([object()], TypeError), ([None], TypeError), ([[1], [1, 2]], RuntimeError), ([np.array(["a"])], TypeError)],
)
def test_collate_refuses(batch, error):
    with pytest.raises(error):
        data.default_collate(batch)


def test_convert():
    v = data.default_convert
    assert isinstance(v(np.ones(2)), torch.Tensor) and v(3) == 3 and v("x") == "x"
    assert isinstance(v({"a": np.ones(1)})["a"], torch.Tensor) and isinstance(v([np.float32(1)])[0], torch.Tensor)


def test_whole_batches_from_the_data_set():
    asked = []

    class Whole(data.Dataset):
        def __getitems__(self, indices):
            asked.append(indices)
            return indices

        def __len__(self):
            return 3

    assert batches(data.DataLoader(Whole(), batch_size=2)) == [[0, 1], [2]] and asked == [[0, 1], [2]]


@pytest.mark.parametrize(
    "act, error",
    [
        (lambda: data.DataLoader([1], batch_size=0), ValueError), (lambda: data.DataLoader([1], num_workers=-1), ValueError),
        (lambda: data.DataLoader([1], num_workers=2), NotImplementedError),
        (lambda: data.DataLoader([1], shuffle=True, sampler=[1]), ValueError),
        (lambda: data.DataLoader([1], batch_sampler=[[1]], batch_size=3), ValueError),
        (lambda: data.DataLoader([1], batch_size=None, drop_last=True), ValueError),
        (lambda: data.DataLoader([1], prefetch_factor=2), ValueError), (lambda: data.random_split(range(3), [1, 1]), ValueError),
        (lambda: data.TensorDataset(torch.ones(2), torch.ones(3)), AssertionError), (lambda: data.Dataset()[0], NotImplementedError),
        (lambda: data.RandomSampler([]), ValueError), (lambda: data.RandomSampler([1], replacement=3), TypeError),
        (lambda: data.WeightedRandomSampler([1.0], 0), ValueError), (lambda: data.ConcatDataset([]), AssertionError),
        (lambda: data.ConcatDataset([[1]])[-5], ValueError),
    ],
)  # fmt: skip
def test_refusals(act, error):
    with pytest.raises(error):
        act()


def test_worker_info():
    assert data.get_worker_info() is None
