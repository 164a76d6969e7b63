"""`stft` and `istft` against the definition, SciPy's frames of NumPy's transforms, and each other."""

import numpy as np
import pytest
import scipy.signal


def frames(x, n_fft, hop, window):
    """The transform of the definition: [frequencies, frames]."""
    starts = range(0, len(x) - n_fft + 1, hop)
    return np.stack([np.fft.fft(x[s : s + n_fft] * window) for s in starts], axis=1)


@pytest.fixture
def signal(torch):
    return torch.tensor(np.random.RandomState(3).randn(2, 60))


@pytest.mark.parametrize("n_fft, hop, length", [(16, 4, 16), (16, 5, 10), (9, 3, 9), (8, 8, 5)])
def test_stft_is_its_definition(torch, signal, n_fft, hop, length):
    window = torch.hann_window(length, dtype=torch.float64) + 0.1
    got = torch.stft(signal, n_fft, hop, length, window, center=False, return_complex=True)
    left = (n_fft - length) // 2
    padded = np.pad(np.array(window.tolist()), (left, n_fft - length - left))
    for row, x in zip(np.array(got.tolist()), np.array(signal.tolist())):
        np.testing.assert_allclose(row, frames(x, n_fft, hop, padded)[: n_fft // 2 + 1], atol=1e-12)
    assert torch.equal(signal[0].stft(n_fft, hop, length, window, center=False, return_complex=True), got[0])
    whole = torch.stft(signal, n_fft, hop, length, window, center=False, onesided=False, return_complex=True)
    assert whole.shape[1] == n_fft and torch.allclose(whole[:, : n_fft // 2 + 1], got)
    root = torch.stft(signal, n_fft, hop, length, window, center=False, normalized=True, return_complex=True)
    assert torch.allclose(root * n_fft**0.5, got)
    aligned = torch.stft(signal, n_fft, hop, length, window, center=False, align_to_window=True, return_complex=True)
    wide = np.pad(np.array(signal[0].tolist()), (left, n_fft - length - left))
    np.testing.assert_allclose(aligned[0].tolist(), frames(wide, n_fft, hop, padded)[: n_fft // 2 + 1], atol=1e-12)


def test_centred_frames_are_scipys(torch, signal):
    window = torch.hann_window(16, dtype=torch.float64)
    got = torch.stft(signal, 16, 4, window=window, pad_mode="constant", return_complex=True)
    short = scipy.signal.ShortTimeFFT(np.array(window.tolist()), 4, 1.0)
    want = short.stft(np.array(signal.tolist()), p0=0, p1=16) * np.exp(2j * np.pi * np.arange(9) * 8 / 16)[:, None]
    turned = np.array(got.tolist())
    np.testing.assert_allclose(abs(turned), abs(want), atol=1e-12)


@pytest.mark.usefixtures("warn_always")
@pytest.mark.parametrize("complex_signal", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_istft_is_the_inverse(torch, signal, complex_signal, normalized):
    x = torch.complex(signal, signal.flip(1)) if complex_signal else signal
    window = torch.hann_window(12, dtype=torch.float64)
    for length in (None, 60, 50):
        spectrum = torch.stft(x, 16, 4, 12, window, normalized=normalized, return_complex=True)
        back = torch.istft(
            spectrum, 16, 4, 12, window, normalized=normalized, length=length, return_complex=complex_signal
        )
        assert back.dtype == x.dtype and torch.allclose(back, x[:, : back.shape[1]])
        assert length is None or back.shape[1] == length
    assert torch.allclose(
        spectrum[0].istft(16, 4, 12, window, normalized=normalized, return_complex=complex_signal), x[0]
    )
    flat = torch.ones(16, dtype=torch.float64)
    spectrum = torch.stft(x, 16, 4, window=flat, normalized=normalized, return_complex=True)
    with pytest.warns(UserWarning, match="padded with zeros"):
        wide = torch.istft(
            spectrum, 16, 4, window=flat, normalized=normalized, length=70, return_complex=complex_signal
        )
    assert wide.shape == (2, 70) and torch.allclose(wide[:, :60], x) and not wide[:, 68:].any()


def test_gradients(torch):
    x = torch.tensor(np.random.RandomState(4).randn(20), requires_grad=True)
    window = torch.tensor(np.random.RandomState(5).rand(8) + 0.5, requires_grad=True)
    forth = lambda x, w: torch.stft(x, 8, 3, window=w, return_complex=True)
    back = lambda x, w: torch.istft(forth(x, w) * 2, 8, 3, window=w)
    assert torch.autograd.gradcheck(forth, (x, window)) and torch.autograd.gradcheck(back, (x, window))
    assert torch.autograd.gradgradcheck(forth, (x, window))


@pytest.mark.usefixtures("warn_always")
def test_what_is_refused(torch):
    x, window = torch.ones(20), torch.ones(8)
    for call, text in [
        (lambda: torch.stft(x, 8), "requires the return_complex parameter"),
        (lambda: torch.stft(x, 50, center=False, return_complex=True), "expected 0 < n_fft < 20"),
        (lambda: torch.stft(x, 8, 0, return_complex=True), "expected hop_length > 0"),
        (lambda: torch.stft(x, 8, 2, 9, return_complex=True), "expected 0 < win_length <= n_fft"),
        (lambda: torch.stft(x, 8, 2, 6, window, return_complex=True), "expected a 1D window tensor of size equal to"),
        (lambda: torch.stft(x.long(), 8, return_complex=True), "floating point or complex"),
        (lambda: torch.stft(x[None, None], 8, return_complex=True), "expected a 1D or 2D tensor"),
        (lambda: torch.stft(x, 8, align_to_window=True, return_complex=True), "only be set when center = false"),
        (lambda: torch.istft(x, 8, window=window), "requires a complex-valued input"),
        (lambda: torch.istft(torch.ones(4, 5) * 1j, 8, window=window), "expected the frequency dimension"),
        (lambda: torch.istft(torch.ones(5, 5) * 1j, 8, 9, window=window), "expected 0 < hop_length <= win_length"),
        (lambda: torch.istft(torch.ones(5, 5) * 1j, 8, 4, window=window * 0), "window overlap add min"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        assert torch.stft(x, 8, window=window, return_complex=False).shape[-1] == 2
    with pytest.warns(UserWarning, match="known to cause spectral leakage"):
        torch.stft(x, 8, return_complex=True)
    with pytest.warns(UserWarning, match="A window was not provided"):
        assert torch.allclose(torch.istft(torch.stft(x, 8, return_complex=True), 8), x)


def test_transforms_at_lengths_of_every_kind(torch):
    """Powers, primes, and products, along each dimension, against NumPy; a plan serves many threads."""
    for n in (1, 2, 3, 7, 64, 97, 360, 1009):
        x = np.random.RandomState(n).randn(3, n, 5) + 1j * np.random.RandomState(n + 1).randn(3, n, 5)
        t = torch.tensor(x)
        np.testing.assert_allclose(torch.fft.fft(t, dim=1).tolist(), np.fft.fft(x, axis=1), atol=1e-10)
        np.testing.assert_allclose(torch.fft.ifft(t, dim=-2).tolist(), np.fft.ifft(x, axis=1), atol=1e-10)
        np.testing.assert_allclose(torch.fft.rfft(t.real, dim=1).tolist(), np.fft.rfft(x.real, axis=1), atol=1e-10)
        np.testing.assert_allclose(torch.fft.irfft(t, n, 1).tolist(), np.fft.irfft(x, n, 1), atol=1e-10)
