"""Linear algebra, Fourier transforms, windows and masked reductions, against numbers measured on PyTorch 2.15."""

import flambeau as torch
import numpy as np
import pytest


def close(got, want, tolerance=1e-6):
    assert np.allclose(got.numpy() if isinstance(got, torch.Tensor) else got, want, atol=tolerance, rtol=tolerance), got


A = [[4.0, 1.0, 2.0], [1.0, 3.0, 0.0], [2.0, 0.0, 5.0]]


def test_factorisations_give_the_matrix_back():
    a = torch.tensor(A, dtype=torch.float64)
    l = torch.linalg.cholesky(a)
    close(l @ l.mT, A)
    q, r = torch.linalg.qr(a)
    close(q @ r, A)
    close(r.diagonal(), [-4.5825756950, -2.7688746210, 3.3888747468], 1e-8)
    p, lower, upper = torch.linalg.lu(a)
    close(p @ lower @ upper, A)
    u, s, vh = torch.linalg.svd(a)
    close(u * s @ vh, A)
    values, vectors = torch.linalg.eigh(a)
    close(vectors * values @ vectors.mT, A)
    close(values.sum(), 12.0)


def test_systems_and_inverses():
    a, b = torch.tensor(A), torch.tensor([1.0, 2.0, 3.0])
    close(a @ torch.linalg.solve(a, b), [1, 2, 3], 1e-5)
    close(a @ torch.linalg.inv(a), np.eye(3), 1e-5)
    close(torch.linalg.det(a), 43.0, 1e-4)
    close(torch.linalg.pinv(a) @ a, np.eye(3), 1e-5)
    close(torch.linalg.matrix_rank(torch.ones(3, 3)), 1)


def test_a_singular_matrix_is_refused_with_the_class_of_linalg():
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.ones(2, 2))
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        torch.linalg.cholesky(-torch.eye(2))


def test_gradient_of_the_logarithm_of_a_determinant_is_the_inverse():
    a = torch.tensor(A, dtype=torch.float64, requires_grad=True)
    torch.logdet(a).backward()
    close(a.grad, np.linalg.inv(np.array(A)).T)


def test_fourier_transforms_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 12))
    t = torch.from_numpy(x)
    close(torch.fft.rfft(t), np.fft.rfft(x))
    close(torch.fft.fft2(t), np.fft.fft2(x))
    close(torch.fft.irfft(torch.fft.rfft(t), n=12), x)
    close(torch.fft.fftshift(torch.arange(5)), [3, 4, 0, 1, 2])
    close(torch.fft.fftfreq(4), [0.0, 0.25, -0.5, -0.25])


def test_istft_turns_stft_back():
    x = torch.sin(torch.arange(400, dtype=torch.float64) / 5)
    window = torch.hann_window(64, dtype=torch.float64)
    s = torch.stft(x, 64, 16, window=window, return_complex=True)
    assert s.shape == (33, 26)
    close(torch.istft(s, 64, 16, window=window, length=400), x, 1e-9)


def test_windows():
    close(torch.hann_window(4), [0.0, 0.5, 1.0, 0.5])
    close(torch.signal.windows.hamming(3), [0.08, 1.0, 0.08])
    close(torch.bartlett_window(5, periodic=False), [0.0, 0.5, 1.0, 0.5, 0.0])
    with pytest.raises(ValueError, match="non-negative"):
        torch.signal.windows.hann(-1)


def test_masked_reductions_leave_out_what_the_mask_does_not_hold():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    close(torch.masked.sum(x, 1, mask=mask), [4.0, 0.0])
    close(torch.masked.mean(x, 1, mask=mask)[0], 2.0)
    assert torch.masked.mean(x, 1, mask=mask)[1].isnan()
    close(torch.masked.softmax(x, 1, mask=mask)[0], [0.11920292, 0.0, 0.88079708])


def test_low_rank_factors_of_a_matrix_of_low_rank_are_exact():
    torch.manual_seed(0)
    a = torch.randn(20, 3, dtype=torch.float64) @ torch.randn(3, 15, dtype=torch.float64)
    u, s, v = torch.svd_lowrank(a, 4)
    close(u * s @ v.mT, a, 1e-8)
    u, s, v = torch.pca_lowrank(a, 3)
    close(u * s @ v.mT, a - a.mean(0), 1e-8)


def test_orthogonal_weights_are_those_of_pytorch():
    torch.manual_seed(3)
    w = torch.nn.init.orthogonal_(torch.empty(3, 5))
    close(w[0], [0.7792853117, 0.1696117967, 0.0863206685, -0.5953886509, 0.0448031574])
    close(w @ w.T, np.eye(3))


def test_gradient_takes_spacing_in_numbers_and_coordinates():
    x = torch.tensor([1.0, 4.0, 9.0, 16.0])
    close(torch.gradient(x)[0], [3.0, 4.0, 6.0, 7.0])
    close(torch.gradient(x, spacing=2.0)[0], [1.5, 2.0, 3.0, 3.5])
    close(torch.gradient(x, spacing=(torch.tensor([1.0, 2.0, 3.0, 4.0]),))[0], [3.0, 4.0, 6.0, 7.0])


def test_coordinates_from_numbers():
    rows, columns = torch.unravel_index(torch.tensor([0, 5, 7]), (2, 4))
    assert rows.tolist() == [0, 1, 1] and columns.tolist() == [0, 1, 3]
    with pytest.raises(ValueError):
        torch.unravel_index(torch.tensor([1]), (0, 2))


def test_histograms_and_quantiles():
    x = torch.tensor([0.0, 1.0, 2.0, 2.0, 3.0])
    assert torch.histc(x, 3).tolist() == [1.0, 1.0, 3.0]
    hist, edges = torch.histogram(x, 2, range=(0.0, 4.0))
    assert hist.tolist() == [2.0, 3.0] and edges.tolist() == [0.0, 2.0, 4.0]
    close(torch.quantile(x, 0.4), 1.6)
    assert torch.mode(torch.tensor([3, 1, 3, 1])).values == 1


def test_buffers_are_shared():
    memory = bytearray(np.array([1.0, 2.0], dtype=np.float32).tobytes())
    t = torch.frombuffer(memory, dtype=torch.float32)
    t[0] = 5.0
    assert np.frombuffer(memory, dtype=np.float32).tolist() == [5.0, 2.0]
    array = np.zeros(2)
    torch.asarray(array)[0] = 1.0
    assert array[0] == 1.0
    with pytest.raises(ValueError):
        torch.asarray([1, 2], copy=False)
