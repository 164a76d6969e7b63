"""The names of `interpolate` that PyTorch has deprecated."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .._base import ops
from .._C import Tensor

_interpolate = ops["nn.functional.interpolate"]


def _deprecated(name):
    text = f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead."
    warnings.warn(text, stacklevel=3)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` by a deprecated name."""
    _deprecated("upsample")
    return _interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` by the nearest element; a deprecated name."""
    _deprecated("upsample_nearest")
    return _interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Bilinear `interpolate` with aligned corners; a deprecated name."""
    _deprecated("upsample_bilinear")
    return _interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
