"""Pools, paddings, interpolation, sampling and bags of embeddings.

Values were measured on PyTorch 2.15 with the same calls; inputs are ``7 * i % 11`` over the elements.
"""

import pytest

import flambeau as torch
import flambeau.nn.functional as F


def numbers(*shape):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count) * 7 % 11).float().reshape(shape)


def flat(t):
    return t.flatten().tolist()


def close(t, wanted):
    return flat(t) == pytest.approx(wanted, abs=2e-5)


def test_pad():
    wanted = [6, 10, 6, 2, 6, 10, 7, 0, 7, 3, 7, 0, 6, 10, 6, 2, 6, 10]
    assert flat(F.pad(numbers(1, 1, 2, 3), (1, 2, 1, 0), "reflect")) == wanted
    assert flat(F.pad(numbers(1, 2, 4), (2, -1), "circular")) == [7, 3, 0, 7, 3, 2, 9, 6, 2, 9]
    assert flat(F.pad(numbers(2), (1, 1), value=True)) == [1, 0, 7, 1]
    with pytest.raises(RuntimeError, match="less than the corresponding input dimension"):
        F.pad(numbers(1, 3), (3, 0), "reflect")
    with pytest.raises(NotImplementedError, match="Only 2D"):
        F.pad(numbers(3), (1, 0), "reflect")
    with pytest.raises(RuntimeError, match="negative output size"):
        F.pad(numbers(2, 2), (-2, -1))


def test_shuffles():
    assert flat(F.pixel_shuffle(numbers(1, 4, 1, 2), 2)) == [0, 3, 7, 10, 6, 9, 2, 5]
    assert flat(F.channel_shuffle(numbers(1, 4, 1, 2), 2)) == [0, 7, 6, 2, 3, 10, 9, 5]
    assert F.pixel_unshuffle(F.pixel_shuffle(numbers(1, 4, 1, 2), 2), 2).equal(numbers(1, 4, 1, 2))


def test_max_pool():
    x = numbers(1, 4, 5)
    out, places = F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)
    assert flat(out) == [9, 10, 10, 9, 9, 10, 6, 9, 5]
    assert flat(places) == [6, 3, 3, 6, 6, 14, 15, 17, 18]
    assert flat(F.max_pool1d(numbers(1, 8), 2, 1, 0, 3)) == [10, 7, 3, 10, 6]
    wide = torch.cat([x.reshape(1, 1, 4, 5)] * 3, 1).contiguous(memory_format=torch.channels_last)
    pooled = F.max_pool2d(wide, 3, 2, 1, ceil_mode=True)
    assert flat(pooled[0, 2]) == flat(out) and pooled.is_contiguous(memory_format=torch.channels_last)
    nan = torch.tensor([[1.0, float("nan"), 3.0, 2.0]])
    out, places = F.max_pool1d(nan, 2, return_indices=True)
    assert out.isnan().tolist() == [[True, False]] and flat(places) == [1, 2]
    assert F.max_pool2d(torch.arange(16, dtype=torch.uint8).reshape(1, 4, 4), 2).tolist() == [[[5, 7], [13, 15]]]
    with pytest.raises(RuntimeError, match="pad should be at most half"):
        F.max_pool2d(x, 2, padding=2)


def test_max_pool_gradient():
    x = numbers(1, 1, 3, 3).double().requires_grad_()
    F.max_pool2d(x, 2, 1).square().sum().backward()
    assert flat(x.grad) == [0, 14, 0, 40, 12, 0, 0, 0, 0]


def test_long_rows_of_windows():
    x = numbers(2, 3, 5, 75)
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (4, 3, 2)):
        out = F.max_pool2d(x, kernel, stride, padding)
        around = F.pad(x, (padding,) * 4, value=-1.0)
        parts = around.unfold(2, kernel, stride).unfold(3, kernel, stride)
        assert out.equal(parts.amax((-2, -1)))
        mean = F.avg_pool2d(x, kernel, stride, padding)
        parts = F.pad(x, (padding,) * 4).unfold(2, kernel, stride).unfold(3, kernel, stride)
        assert torch.allclose(mean, parts.mean((-2, -1)), atol=1e-6)


def test_strided_volumes_without_a_batch():
    x = numbers(3, 4, 5, 6).contiguous(memory_format=torch.channels_last)
    assert not x.is_contiguous()
    for pool in (F.max_pool3d, F.avg_pool3d):
        assert pool(x, 2).equal(pool(x.contiguous(), 2))
    assert F.adaptive_max_pool3d(x, 2).equal(F.adaptive_max_pool3d(x.contiguous(), 2))
    found = []
    for y in (x, x.contiguous()):
        leaf = y.detach().requires_grad_()
        F.max_pool3d(leaf, 2).square().sum().backward()
        found.append(leaf.grad)
    assert found[0].equal(found[1])


def test_average_pool():
    x = numbers(1, 4, 5)
    wanted = [4.5, 5.83333, 6.25, 3.83333, 4.55556, 4.66667, 4.0, 5.33333, 3.0]
    assert close(F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), wanted)
    wanted = [2.0, 3.88889, 2.77778, 2.55556, 4.55556, 3.11111, 1.33333, 2.66667, 1.0]
    assert close(F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), wanted)
    assert flat(F.avg_pool2d(numbers(1, 4, 4).long() - 5, 2, divisor_override=3)) == [-1, 2, 0, 0]
    assert F.avg_pool2d(torch.ones(1, 49, 49), 7).equal(torch.ones(1, 7, 7))
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        F.avg_pool2d(x, 2, divisor_override=0)


def test_adaptive_pools():
    x = numbers(1, 4, 5)
    assert close(F.adaptive_avg_pool2d(x, (3, None)), [1, 8, 4, 5.5, 7, 3, 4.5, 6, 2, 9, 5, 1, 8, 4, 5.5])
    out, places = F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
    assert flat(out) == [9, 10, 9, 10, 9, 10] and flat(places) == [6, 3, 6, 14, 17, 14]
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        F.adaptive_avg_pool2d(torch.ones(2, 2), 1)


def test_other_pools():
    assert close(F.lp_pool1d(numbers(1, 6), 2, 2), [7.0, 10.44031, 6.32456])
    out, places = F.max_pool1d(numbers(1, 7), 2, return_indices=True)
    assert flat(F.max_unpool1d(out, places, 2, output_size=(7,))) == [0, 7, 0, 10, 6, 0, 0]
    with pytest.raises(ValueError, match="invalid output_size"):
        F.max_unpool1d(out, places, 2, output_size=(9,))
    samples = torch.tensor([[[0.3, 0.7]]])
    x = numbers(1, 5, 6)
    out, places = F.fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=samples)
    assert flat(out) == [9, 7, 10, 6, 9, 10, 8, 9, 10, 10, 9, 9]
    assert flat(places) == [6, 1, 3, 4, 6, 14, 9, 17, 25, 25, 28, 28]
    torch.manual_seed(3)
    assert flat(F.fractional_max_pool2d(x, 2, (2, 3))) == [9, 10, 6, 10, 8, 9]


def test_interpolate():
    x = numbers(1, 1, 5)
    assert flat(F.interpolate(x, size=3)) == [0, 7, 10]
    assert flat(F.interpolate(x, size=3, mode="nearest-exact")) == [0, 3, 6]
    x = numbers(1, 1, 4)
    wanted = [0.0, 3.0625, 6.75, 4.25, 5.1875, 9.5625]
    assert close(F.interpolate(x, scale_factor=1.6, mode="linear"), wanted)
    wanted = [0.0, 3.5, 6.33333, 3.66667, 6.5, 10.0]
    assert close(F.interpolate(x, scale_factor=1.6, mode="linear", recompute_scale_factor=True), wanted)
    wanted = [0.0, 3.0, 5.0, 2.5, 10.0, 2.0]
    assert close(F.interpolate(numbers(1, 1, 2, 3), size=(3, 2), mode="bilinear", align_corners=True), wanted)
    wanted = [1.97722, 5.62365, 5.86243, 2.52148, 9.89299, 7.21162, 3.26806, 0.9043]
    assert close(F.interpolate(numbers(1, 1, 3, 3), size=(2, 4), mode="bicubic"), wanted)
    assert close(F.interpolate(numbers(1, 1, 4, 5), size=(2, 3), mode="area"), [4.5, 5.83333, 6.25, 3.0, 4.33333, 4.75])
    with pytest.raises(NotImplementedError, match="Got 3D input, but bilinear mode needs 4D input"):
        F.interpolate(x, size=3, mode="bilinear")
    with pytest.raises(ValueError, match="only one of size or scale_factor"):
        F.interpolate(x, size=3, scale_factor=2)


def test_interpolate_antialiased():
    x = numbers(1, 1, 4, 5)
    wanted = [3.7551, 5.12698, 6.44898, 3.53061, 5.47619, 4.87755]
    assert close(F.interpolate(x, size=(2, 3), mode="bilinear", antialias=True), wanted)
    wanted = [3.76656, 5.17799, 6.53789, 3.49078, 5.42581, 4.85092]
    assert close(F.interpolate(x, size=(2, 3), mode="bicubic", antialias=True), wanted)
    wanted = [4.12449, 4.9896, 6.13142, 5.64822, 4.7178, 4.56126]
    assert close(F.interpolate(numbers(1, 1, 4, 8), size=(2, 3), mode="lanczos", antialias=True), wanted)
    with pytest.raises(ValueError, match="Lanczos mode requires antialias=True"):
        F.interpolate(x, size=3, mode="lanczos")


def test_interpolate_bytes():
    x = (numbers(1, 1, 4, 5) * 23).to(torch.uint8)
    wanted = [54, 69, 169, 77, 92, 150, 93, 123, 138, 68, 153, 168, 84, 184, 115, 107, 207, 54]
    assert flat(F.interpolate(x, size=(6, 3), mode="bilinear")) == wanted
    wanted = [52, 65, 180, 84, 88, 148, 98, 125, 133, 58, 151, 178, 73, 188, 115, 104, 211, 36]
    assert flat(F.interpolate(x, size=(6, 3), mode="bicubic")) == wanted
    assert flat(F.interpolate(x, size=(2, 3), mode="bilinear", antialias=True)) == [86, 118, 148, 82, 126, 112]


def test_interpolate_gradient():
    x = numbers(1, 1, 3, 3).double().requires_grad_()
    F.interpolate(x, size=(2, 2), mode="bicubic").square().sum().backward()
    wanted = [3.46251, 2.77364, 4.36165, 4.82706, 2.46648, 2.13061, 10.15412, 4.18403, 1.64859]
    assert close(x.grad, wanted)


@pytest.mark.parametrize(
    ("mode", "outside", "wanted"),
    [
        ("bilinear", "zeros", [3.15, 0.14]),
        ("bilinear", "border", [4.5, 2.8]),
        ("bilinear", "reflection", [4.5, 2.8]),
        ("nearest", "zeros", [6.0, 0.0]),
        ("nearest", "border", [6.0, 4.0]),
        ("bicubic", "zeros", [4.0311, 0.08455]),
        ("bicubic", "border", [5.50285, 2.43193]),
        ("bicubic", "reflection", [5.60414, 2.22167]),
    ],
)
def test_grid_sample(mode, outside, wanted):
    grid = torch.tensor([[[[-0.9, 0.2], [0.4, 1.3]]]])
    assert close(F.grid_sample(numbers(1, 1, 3, 4), grid, mode, outside, align_corners=False), wanted)


def test_affine_grid():
    theta = torch.tensor([[[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]]])
    wanted = [-0.75, -2.0, 0.25, -2.0, -0.25, 0.0, 0.75, 0.0]
    assert close(F.affine_grid(theta, (1, 1, 2, 2), align_corners=False), wanted)
    with pytest.raises(NotImplementedError, match="only supports 4D and 5D"):
        F.affine_grid(theta, (1, 2, 2), align_corners=False)


def test_embedding_bag():
    table, index, offsets = numbers(5, 2), torch.tensor([0, 3, 1, 1, 4]), torch.tensor([0, 2, 2])
    assert flat(F.embedding_bag(index, table, offsets, mode="sum", padding_idx=1)) == [9, 12, 0, 0, 1, 8]
    assert flat(F.embedding_bag(index, table, offsets, mode="mean", padding_idx=1)) == [4.5, 6, 0, 0, 1, 8]
    assert flat(F.embedding_bag(index, table, offsets, mode="max", padding_idx=1)) == [9, 7, 0, 0, 1, 8]
    factors = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    found = F.embedding_bag(index, table, offsets, mode="sum", per_sample_weights=factors)
    assert flat(found) == [18, 17, 0, 0, 26, 110]
    out, bags, sizes, largest = torch.embedding_bag(table, index, offsets, False, 2)
    assert flat(out) == [9, 7, 0, 0, 3, 10] and flat(bags) == [0, 0, 2, 2, 2] and flat(sizes) == [2, 0, 3]
    assert flat(largest) == [3, 0, 0, 0, 1, 1]
    with pytest.raises(ValueError, match="offsets has to be a 1D Tensor but got None"):
        F.embedding_bag(index, table)
    with pytest.raises(RuntimeError, match="has to be 0"):
        F.embedding_bag(index, table, torch.tensor([1, 2]))
