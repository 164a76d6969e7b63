"""`PixelShuffle` and `PixelUnshuffle`: blocks of channels as squares of pixels, and back."""

from __future__ import annotations

from ..._C import Tensor
from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Turns each block of r * r channels into a square of pixels, with r = `upscale_factor`.

    Shape: `(*, C * r * r, H, W)` to `(*, C, H * r, W * r)`.

    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution", arXiv:1609.05158.
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`, with r = `downscale_factor`.

    Shape: `(*, C, H * r, W * r)` to `(*, C * r * r, H, W)`.
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
