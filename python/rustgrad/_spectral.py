"""`stft` and `istft`: Fourier transforms of overlapping frames of a signal."""

from __future__ import annotations

from typing import Literal

from . import _C
from ._base import Tensor, ops
from .overrides import overridable

__all__ = ["istft", "stft"]

_pad = ops["nn.functional.pad"]
# How `_fft_c2c` and its kin scale: not, by the root of the number of points, by the number.
_UNSCALED, _ORTHONORMAL, _MEAN = 0, 1, 2


def _centered(window, n_fft):
    """A window with zeros on both sides."""
    left = (n_fft - window.shape[0]) // 2
    return _pad(window, [left, n_fft - window.shape[0] - left])


def _same_device(name, input, window):
    if window is not None and window.device != input.device:
        raise RuntimeError(
            f"{name} input and window must be on the same device but got self on {input.device} and window on "
            f"{window.device}"
        )


def _checks(name, n_fft, hop_length, win_length):
    """A function that raises what is wrong with a call."""

    def require(holds, problem):
        if not holds:
            raise RuntimeError(f"{name}(n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}): {problem}")

    return require


def _complex_output(input, window, return_complex):
    """Whether the result is complex; numbers in pairs are deprecated."""
    if return_complex is None:
        if not input.is_complex() and (window is None or not window.is_complex()):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return True
    if not return_complex:
        _C._warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors "
            "for all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real "
            "on the complex output to recover the old return format.",
            4,
        )
    return return_complex


def _frames(input, window, n_fft, hop_length, align_to_window):
    """Windowed frames: [batch, frames, n_fft]."""
    if window is not None and window.shape[0] < n_fft:
        if align_to_window:
            left = (n_fft - window.shape[0]) // 2
            input = _pad(input, [left, n_fft - window.shape[0] - left])
        window = _centered(window, n_fft)
    frames = input.unfold(1, n_fft, hop_length)
    return frames if window is None else frames * window


@overridable
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: Literal["constant", "reflect", "replicate", "circular"] = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform: `X[w, m] = sum_k window[k] input[m hop + k] exp(-2 pi i w k / n_fft)`.

    Args:
        input (Tensor): signals [length] or [batch, length].
        n_fft (int): samples in a frame.
        hop_length (int, optional): samples between frames; `n_fft // 4` by default.
        win_length (int, optional): samples in the window, which is centred in the frame; `n_fft` by default.
        window (Tensor, optional): the window; ones by default.
        center (bool, optional): whether frame m is centred at `m hop`: the signal is padded by half a frame.
        pad_mode (str, optional): how; see `nn.functional.pad`.
        normalized (bool, optional): whether to divide by the root of `n_fft`.
        onesided (bool, optional): only the `n_fft // 2 + 1` frequencies that are not conjugates of others; the default
            for real signals and windows.
        return_complex (bool): must be True for real signals; False gives pairs of numbers and is deprecated.
        align_to_window (bool, optional): without `center`, whether the first window, not frame, starts with the signal.

    Returns:
        The transform, `[.., frequencies, frames]`.
    """
    _same_device("stft", input, window)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    return_complex = _complex_output(input, window, return_complex)
    require = _checks("stft", n_fft, hop_length, win_length)
    require(input.is_floating_point() or input.is_complex(), "expected a tensor of floating point or complex values")
    require(input.dim() in (1, 2), "expected a 1D or 2D tensor")
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    batch = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        batch = _pad(batch.unsqueeze(0), [n_fft // 2, n_fft // 2], pad_mode).squeeze(0)
    require(0 < n_fft <= batch.shape[1], f"expected 0 < n_fft < {batch.shape[1]}, but got n_fft={n_fft}")
    require(hop_length > 0, f"expected hop_length > 0, but got hop_length={hop_length}")
    require(0 < win_length <= n_fft, f"expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is None:
        _C._warn_once(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage. Other "
            "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage. To suppress "
            "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
            3,
        )
        if win_length < n_fft:
            window = ops["ones"](win_length, dtype=input.dtype, device=input.device)
    else:
        expected = f"expected a 1D window tensor of size equal to win_length={win_length}"
        require(window.shape == (win_length,), f"{expected}, but got window with size {list(window.shape)}")
    frames = _frames(batch, window, n_fft, hop_length, align_to_window)
    onesided = not frames.is_complex() if onesided is None else onesided
    mode = _ORTHONORMAL if normalized else _UNSCALED
    if frames.is_complex():
        require(not onesided, "Cannot have onesided output if window or input is complex")
        out = ops["_fft_c2c"](frames, [2], mode, True)
    else:
        out = ops["_fft_r2c"](frames, [2], mode, onesided)
    out = out.transpose(1, 2)
    out = out.squeeze(0) if input.dim() == 1 else out
    return out if return_complex else ops["view_as_real"](out)


def _overlapped(frames, hop_length):
    """The sum of frames, each `hop_length` after the last: [batch, frames, n_fft] gives [batch, length]."""
    batch, count, n_fft = frames.shape
    arange = lambda n: ops["arange"](n, device=frames.device)
    at = arange(count).unsqueeze(1) * hop_length + arange(n_fft)
    signal = ops["zeros"](batch, n_fft + hop_length * (count - 1), dtype=frames.dtype, device=frames.device)
    return signal.index_add(1, at.flatten(), frames.flatten(1))


@overridable
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The inverse of `stft`, whose arguments it takes: the signal of the least squared error in its frames.

    Frames are transformed back, windowed and added, and the sum is divided by that of the squared windows, which must not
    vanish (`RuntimeError`). Source: D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier
    transform" (1984).

    Args:
        input (Tensor): complex, `[frequencies, frames]` or `[batch, frequencies, frames]`.
        length (int, optional): samples of the result; by default those that the frames cover.
        return_complex (bool, optional): whether the signal is complex; not with `onesided`.

    Returns:
        The signal, `[.., length]`.
    """
    _same_device("istft", input, window)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        _C._warn_once(
            "A window was not provided. A rectangular window will be applied. Please provide the same window used by "
            "stft to make the inversion lossless. To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`.",
            3,
        )
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    require = _checks("istft", n_fft, hop_length, win_length)
    require(input.numel() > 0, "input tensor cannot be empty.")
    require(input.dim() in (2, 3), f"expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    frequencies, frames = input.shape[-2:]
    onesided = frequencies != n_fft if onesided is None else onesided
    wanted, meaning = (n_fft // 2 + 1, "n_fft / 2 + 1") if onesided else (n_fft, "n_fft")
    expected = f"expected the frequency dimension (3rd to the last) of the input tensor to match {meaning}"
    require(frequencies == wanted, f"{expected} when onesided={onesided}, but got {frequencies}")
    require(0 < hop_length <= win_length, "expected 0 < hop_length <= win_length")
    require(0 < win_length <= n_fft, "expected 0 < win_length <= n_fft")
    if window is not None:
        problem = "Invalid window shape. window has to be 1D and length of `win_length`"
        require(window.shape == (win_length,), problem)
    else:
        window = ops["ones"](win_length, dtype=ops["real"](input).dtype, device=input.device)
    window = _centered(window, n_fft)
    columns = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    mode = _ORTHONORMAL if normalized else _MEAN
    if return_complex:
        require(not onesided, "Cannot have onesided output if window or input is complex")
        signals = ops["_fft_c2c"](columns, [2], mode, False)
    else:
        require(not window.is_complex(), "Complex windows are incompatible with return_complex=False")
        signals = ops["_fft_c2r"](columns[..., : n_fft // 2 + 1], [2], mode, n_fft)
    signal = _overlapped(signals * window, hop_length)
    weight = _overlapped(window.square().expand(1, frames, n_fft), hop_length)
    start = n_fft // 2 if center else 0
    covered = signal.shape[1]
    end = start + length if length is not None else covered - start
    signal, weight = signal[:, start:end], weight[:, start:end]
    require(bool((weight.abs() > 1e-11).all()), "window overlap add min: 1")
    signal = signal / weight
    if end > covered:
        _C._warn_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            3,
        )
        signal = _pad(signal, [0, end - covered])
    return signal if input.dim() == 3 else signal.squeeze(0)
