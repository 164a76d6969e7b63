"""Pooling over one, two and three dimensions: maxima, means and norms of windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._absent import getattr_of
from ..._C import Tensor
from .. import functional as F
from .module import Module

Sizes = int | Sequence[int]
SomeSizes = int | Sequence[int | None] | None

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


def _each(value, dims):
    """One number for all dimensions, or one for each."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def _arguments(self):
        return (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window.

    Args:
        kernel_size (int or tuple): size of a window.
        stride (int or tuple): from one window to the next; by default the size of a window.
        padding (int or tuple): elements, counted as minus infinity, added to both ends.
        dilation (int or tuple): step from one element of a window to the next.
        return_indices (bool): whether the place of each maximum in its channel is returned too, for `MaxUnpool1d`.
        ceil_mode (bool): whether a last window may reach beyond the end.

    Shape:
        input `(N, C, L)` or `(C, L)`; output `(N, C, L_out)` or `(C, L_out)` with
        `L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, *self._arguments())


class MaxPool2d(_MaxPoolNd):
    """`MaxPool1d` over two dimensions.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, *self._arguments())


class MaxPool3d(_MaxPoolNd):
    """`MaxPool1d` over three dimensions.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, *self._arguments())


class _MaxUnpoolNd(Module):
    _dims: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, self._dims)
        self.stride = _each(stride if stride is not None else kernel_size, self._dims)
        self.padding = _each(padding, self._dims)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts each element back to where `MaxPool1d` found it, among zeros.

    Args:
        kernel_size (int or tuple): size of a window of the pooling.
        stride (int or tuple): from one window to the next; by default the size of a window.
        padding (int or tuple): that of the pooling.

    Shape:
        input and indices `(N, C, L)` or `(C, L)`; output `(N, C, L_out)` or `(C, L_out)`, by default
        `L_out = (L - 1) * stride - 2 * padding + kernel_size`, else `output_size`.

    Raises:
        ValueError: `output_size` differs from the default by a stride or more.
        RuntimeError: an index is not within the output.
    """

    _dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """`MaxUnpool1d` over two dimensions.

    Shape:
        input and indices `(N, C, H, W)` or `(C, H, W)`.
    """

    _dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """`MaxUnpool1d` over three dimensions.

    Shape:
        input and indices `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    _dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window.

    Args:
        kernel_size (int or tuple): size of a window.
        stride (int or tuple): from one window to the next; by default the size of a window.
        padding (int or tuple): zeros added to both ends.
        ceil_mode (bool): whether a last window may reach beyond the end.
        count_include_pad (bool): whether padding counts in the mean.

    Shape:
        input `(N, C, L)` or `(C, L)`; output `(N, C, L_out)` or `(C, L_out)` with
        `L_out = (L + 2 * padding - kernel_size) // stride + 1`.
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _each(kernel_size, 1)
        self.stride = _each(stride if stride is not None else kernel_size, 1)
        self.padding = _each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOfImages(_AvgPoolNd):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _arguments(self):
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolOfImages):
    """`AvgPool1d` over two dimensions; sums are divided by `divisor_override` if it is given.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._arguments())


class AvgPool3d(_AvgPoolOfImages):
    """`AvgPool1d` over three dimensions; sums are divided by `divisor_override` if it is given.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._arguments())


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        dims, name = self._dims, type(self).__name__
        if any(k <= 0 for k in _each(kernel_size, dims)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = _each(kernel_size, dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = _each(output_size, dims) if output_size is not None else None
        self.output_ratio = _each(output_ratio, dims) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _arguments(self):
        return (self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The largest elements of windows of one size whose starts are random, drawn anew for each channel and call.

    Args:
        kernel_size (int or tuple): size of a window.
        output_size (int or tuple): the number of windows; or
        output_ratio (float or tuple): the same as a part of the input's size, between 0 and 1.
        return_indices (bool): whether the place of each maximum in its channel is returned too.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio` are given, or a ratio is not between 0 and 1.

    Source: Graham, "Fractional Max-Pooling", arXiv:1412.6071.
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(input, *self._arguments())


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """`FractionalMaxPool2d` over three dimensions.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(input, *self._arguments())


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    r"""The norm of each window: :math:`(\sum x^p)^{1/p}` for p = `norm_type`.

    Args:
        norm_type (float): the power; infinity is the largest magnitude.
        kernel_size (int or tuple): size of a window.
        stride (int or tuple): from one window to the next; by default the size of a window.
        ceil_mode (bool): whether a last window may reach beyond the end.

    Shape:
        input `(N, C, L)` or `(C, L)`.

    Raises:
        ValueError: `norm_type` is zero.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """`LPPool1d` over two dimensions.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """`LPPool1d` over three dimensions.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: SomeSizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest elements of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows.
        return_indices (bool): whether the place of each maximum in its channel is returned too.

    Shape:
        input `(N, C, L)` or `(C, L)`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest elements of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows; None keeps a size.
        return_indices (bool): whether the place of each maximum in its channel is returned too.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest elements of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows; None keeps a size.
        return_indices (bool): whether the place of each maximum in its channel is returned too.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: SomeSizes) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows.

    Shape:
        input `(N, C, L)` or `(C, L)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows; None keeps a size.

    Shape:
        input `(N, C, H, W)` or `(C, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows of nearly equal size, whatever the size of the input.

    Args:
        output_size (int or tuple): the number of windows; None keeps a size.

    Shape:
        input `(N, C, D, H, W)` or `(C, D, H, W)`.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


__getattr__ = getattr_of(__name__)
