"""Convolutions and windows of images. Numbers were measured on PyTorch 2.15 with the same inputs."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F


@pytest.fixture
def x():
    return (torch.arange(40.0).reshape(1, 2, 4, 5) % 7 - 3).requires_grad_()


@pytest.fixture
def w():
    return (torch.arange(24.0).reshape(2, 2, 2, 3) % 5 - 2).requires_grad_()


def test_conv2d_and_its_gradients(x, w):
    b = torch.tensor([1.0, -1.0], requires_grad=True)
    y = F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    assert y.tolist() == [[[[4.0], [0.0], [9.0]], [[3.0], [7.0], [-4.0]]]]
    assert "Convolution" in y.grad_fn.name()
    y.pow(2).sum().backward()
    assert x.grad[0, 0].tolist() == [[-4, 0, 10, 0, -16], [0, 0, 14, 0, 28], [-28, 0, -14, 0, 0], [-36, 0, -26, 0, -16]]
    assert w.grad[0].tolist() == [[[-36, 0, 36], [-24, -8, 8]], [[-54, -18, 18], [24, -16, 0]]]
    assert b.grad.tolist() == [26, 12]


def test_padding_by_name(x, w):
    wanted = [[5, -8, -14, 1, 8], [6, -3, 5, -8, -13], [0, 9, 10, -3, 1], [-6, -6, -2, 2, 4]]
    assert F.conv2d(x, w, padding="same")[0, 1].tolist() == wanted
    assert torch.equal(F.conv2d(x, w, padding="valid"), F.conv2d(x, w))
    with pytest.raises(RuntimeError, match="strided"):
        F.conv2d(x, w, padding="same", stride=2)
    with pytest.raises(RuntimeError, match="Invalid padding string"):
        F.conv2d(x, w, padding="half")


def test_other_dimensions_and_groups(x):
    depthwise = F.conv1d(x[0, :, 0], torch.arange(6.0).reshape(2, 1, 3), groups=2, padding=1)
    assert depthwise.tolist() == [[-7, -4, -1, 2, 1], [-3, -13, -22, -10, -3]]
    volume = F.conv3d(x[0].reshape(2, 2, 2, 5), torch.arange(8.0).reshape(1, 2, 1, 2, 2))
    assert volume.tolist() == [[[[28, 7, -28, -42]], [[-42, -14, 14, 35]]]]


def test_conv_transpose2d(x, w):
    y = F.conv_transpose2d(x, w, torch.tensor([1.0, 2.0]), stride=(2, 1), padding=1, output_padding=(1, 0))
    assert y[0, 1].tolist() == [
        [7, 12, 4, 3, -1],
        [3, 12, 6, -14, 2],
        [2, -14, 6, 12, 3],
        [-1, 3, 4, 12, 7],
        [4, 2, 1, -14, 7],
        [-5, 1, 2, 3, 5],
        [6, 4, 3, 2, -3],
    ]


def test_complex_and_integers(x, w):
    with torch.no_grad():
        z, v = torch.complex(x[0, :, 0], x[0, :, 1]), torch.complex(w[:, :, 0], w[:, :, 1])
        assert F.conv1d(z, v).tolist() == [[-6 + 4j, 5 - 13j, -5 - 2j], [2 - 1j, 2 + 14j, -5 + 1j]]
        whole = F.conv2d(x.long(), w.long())
        assert whole.dtype == torch.int64 and torch.equal(whole, F.conv2d(x, w).long())


def test_gradients_of_gradients_reach_all_inputs(x, w):
    b = torch.zeros(2, requires_grad=True)
    y = F.conv2d(x, w, b)
    first = torch.autograd.grad(y, (x, w, b), torch.ones_like(y), create_graph=True)
    assert all(g.requires_grad for g in first)
    (second,) = torch.autograd.grad(first[1].sum(), x, torch.ones(()))
    # The gradient of the weight is a sum over windows: each element counts once for each window element that meets it.
    assert second[0, 0].tolist() == [[2, 4, 6, 4, 2], [4, 8, 12, 8, 4], [4, 8, 12, 8, 4], [2, 4, 6, 4, 2]]


def test_channels_last_is_kept(x, w):
    for a, b in ((x, w.contiguous(memory_format=torch.channels_last)), (x.contiguous(memory_format=torch.channels_last), w)):
        y = F.conv2d(a, b)
        assert y.is_contiguous(memory_format=torch.channels_last) and torch.equal(y, F.conv2d(x, w))


def test_unfold_and_fold(x):
    columns = F.unfold(x[:, :1, :, :4], (2, 3), dilation=(2, 1), padding=(0, 1), stride=2)
    assert columns.tolist() == [[[0, -2], [-3, -1], [-2, 0], [0, 1], [0, 2], [1, 3]]]
    image = F.fold(torch.arange(24.0).reshape(4, 6), (3, 4), 2)
    assert image.tolist() == [[[0, 7, 9, 8], [15, 44, 48, 31], [15, 37, 39, 23]]]
    with pytest.raises(RuntimeError, match="sliding blocks 5 \\* 5 = 25, but got input.size\\(2\\)=20"):
        F.fold(torch.zeros(2, 12, 20), (6, 6), 2)


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(weight=(6, 3, 3, 3)), "to have 3 channels, but got 4"),
        (dict(groups=3), "to have 12 channels"),
        (dict(stride=0), "non-positive stride"),
        (dict(bias=(5,)), "bias to be 1-dimensional with 6 elements"),
        (dict(padding=(1, 1, 1)), "list of 2 values"),
        (dict(dilation=4), "Kernel size can't be greater"),
    ],
)
def test_what_does_not_fit(change, words):
    made = dict(weight=(6, 4, 3, 3)) | change
    tensors = {k: torch.zeros(*made.pop(k)) for k in ("weight", "bias") if k in made}
    with pytest.raises(RuntimeError, match=words):
        F.conv2d(torch.zeros(2, 4, 5, 6), **tensors, **made)
