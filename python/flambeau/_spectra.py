"""Spectra of short stretches of a signal: ``stft`` and ``istft``."""

from . import _C, fft

__all__ = ["istft", "stft"]


def _whole_window(name, window, n_fft, win_length, like):
    """The window in the middle of ``n_fft`` places."""
    if win_length <= 0 or win_length > n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win_length} and n_fft={n_fft}")
    if window is None:
        window = _C.ones((win_length,), dtype=like, device="cpu")
    elif window.dim() != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got shape {tuple(window.shape)}")
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return window
    zeros = lambda n: window.new_zeros((n,))  # noqa: E731
    return _C.cat([zeros(left), window, zeros(n_fft - win_length - left)])


def _real(dtype):
    return {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(dtype, dtype)


def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
    onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    """The Fourier transforms of stretches of ``n_fft`` samples that are ``hop_length`` apart, each weighted by a window.

    ``input`` is (samples) or (batch, samples); the result (..., frequencies, stretches), complex, or with a last dimension
    of 2. ``center`` pads so that stretch t has its middle at sample ``t * hop_length``.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    complex_in = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_in:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release.")
        return_complex = True
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, got {input.dtype}")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.dim()}D tensor")
    x = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        from .nn.functional import pad

        n = n_fft // 2
        x = pad(x.unsqueeze(1), (n, n), mode=pad_mode).squeeze(1)
    if n_fft <= 0 or n_fft > x.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop_length}")
    weights = _whole_window("stft", window, n_fft, win_length, x.dtype)
    frames = x.unfold(-1, n_fft, hop_length)
    if window is not None or win_length < n_fft:
        frames = frames * weights
    if onesided is None:
        onesided = not complex_in
    if onesided and complex_in:
        raise RuntimeError("stft: Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else None
    spectra = fft.rfft(frames, norm=norm) if onesided else fft.fft(frames, norm=norm)
    spectra = spectra.transpose(1, 2)
    spectra = spectra.squeeze(0) if input.dim() == 1 else spectra
    return spectra if return_complex else _C.view_as_real(spectra)


def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
    return_complex=False,
):  # fmt: skip
    """The signal whose `stft` is nearest to ``input`` (Griffin and Lim, 1984): stretches are weighted and added up.

    ``length`` is how many samples are given; without it, as many as the stretches hold.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if not input.is_complex():
        raise TypeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    if input.numel() == 0:
        raise RuntimeError(f"istft: input tensor cannot be empty, got shape {tuple(input.shape)}")
    if hop_length <= 0 or hop_length > win_length:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length, but got hop_length={hop_length} and win_length={win_length}")
    x = input.unsqueeze(0) if input.dim() == 2 else input
    if onesided is None:
        onesided = x.shape[1] != n_fft
    bins = n_fft // 2 + 1 if onesided else n_fft
    if x.shape[1] != bins:
        raise RuntimeError(f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True or n_fft, got {x.shape[1]} for n_fft={n_fft}")
    if return_complex and onesided:
        raise RuntimeError("istft: cannot have onesided output if window or input is complex: pass onesided=False")
    weights = _whole_window("istft", window, n_fft, win_length, _real(x.dtype))
    norm = "ortho" if normalized else None
    frames = x.transpose(1, 2)
    if return_complex:
        frames = fft.ifft(frames, norm=norm)
    else:  # the other half of a whole spectrum is not read
        frames = fft.irfft(frames[..., : n_fft // 2 + 1], n=n_fft, norm=norm)
    frames = frames * weights
    count = frames.shape[1]
    whole = n_fft + hop_length * (count - 1)
    places = (_C.arange(count).unsqueeze(1) * hop_length + _C.arange(n_fft)).reshape(-1)
    signal = frames.new_zeros((frames.shape[0], whole)).index_add(1, places, frames.reshape(frames.shape[0], -1))
    squares = (weights * weights).expand(count, n_fft).reshape(-1)
    envelope = squares.new_zeros((whole,)).index_add(0, places, squares)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - (n_fft // 2 if center else 0)
    signal, envelope = signal[:, start:end], envelope[start:end]
    if envelope.numel() and envelope.abs().min() <= 1e-11:
        raise RuntimeError("istft: window overlap add min: 1 is not met: some samples have no weight in any stretch")
    signal = signal / envelope
    if length is not None and signal.shape[1] < length:
        signal = _C.cat([signal, signal.new_zeros((signal.shape[0], length - signal.shape[1]))], 1)
    return signal.squeeze(0) if input.dim() == 2 else signal
