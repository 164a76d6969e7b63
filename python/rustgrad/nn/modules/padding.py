"""Modules that pad the last one, two or three dimensions: with a number, or with elements of the input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..._C import Tensor
from .. import functional as F
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Common base: `padding` as pairs (before, after) from the last dimension on."""

    __constants__ = ["padding"]
    padding: tuple[int, ...]
    _dims = 0
    _mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)

    def _check_input_dim(self, input: Tensor) -> None:
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with elements from its other end; `padding` is one number or (left, right).

    Shape: `(C, W)` or `(N, C, W)` to the same with W + left + right. Raises ValueError for other ranks.
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with elements from their other ends; `padding` is one number or
    (left, right, top, bottom).

    Shape: `(C, H, W)` or `(N, C, H, W)`. Raises ValueError for other ranks.
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with elements from their other ends; `padding` is one number or
    (left, right, top, bottom, front, back).

    Shape: `(C, D, H, W)` or `(N, C, D, H, W)`. Raises ValueError for other ranks.
    """

    _dims = 3


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    value: float

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`; `padding` is one number or (left, right). Negative numbers crop."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`; `padding` is one number or (left, right, top, bottom)."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`; `padding` is one number or (left, right, top, bottom, front, back)."""

    _dims = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dimension with zeros; `padding` is one number or (left, right)."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last two dimensions with zeros; `padding` is one number or (left, right, top, bottom)."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three dimensions with zeros; `padding` is one number or (left, right, top, bottom, front, back)."""


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its reflection about the first and last element; `padding` is one number or (left,
    right), each smaller than the dimension.

    Shape: `(C, W)` or `(N, C, W)`.
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with their reflections; `padding` is one number or (left, right, top, bottom), each
    smaller than its dimension.

    Shape: `(C, H, W)` or `(N, C, H, W)`.
    """

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with their reflections; `padding` is one number or (left, right, top, bottom, front,
    back), each smaller than its dimension.

    Shape: `(C, D, H, W)` or `(N, C, D, H, W)`.
    """

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with its first and last element; `padding` is one number or (left, right).

    Shape: `(C, W)` or `(N, C, W)`.
    """

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions with their first and last elements; `padding` is one number or (left, right, top,
    bottom).

    Shape: `(C, H, W)` or `(N, C, H, W)`.
    """

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with their first and last elements; `padding` is one number or (left, right, top,
    bottom, front, back).

    Shape: `(C, D, H, W)` or `(N, C, D, H, W)`.
    """

    _dims = 3
