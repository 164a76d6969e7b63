"""`Unfold` and `Fold`: the windows of an image as columns (im2col), and their sums back into an image (col2im)."""

from __future__ import annotations

from collections.abc import Sequence

from ..._C import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Adds up the columns of windows into an image of `output_size`; the adjoint of `Unfold`.

    All arguments are one number, or one for height and one for width.

    Shape: `(N, C * kernel, L)` or `(C * kernel, L)` to `(N, C, *output_size)` or `(C, *output_size)`; L is the number of
    windows, the product of `(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`.
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)


class Unfold(Module):
    """The windows of an image as columns.

    All arguments are one number, or one for height and one for width.

    Shape: `(N, C, H, W)` or `(C, H, W)` to `(N, C * kernel, L)` or `(C * kernel, L)`, with L windows as `Fold` counts them.
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)
