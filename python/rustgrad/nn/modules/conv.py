"""Convolutions over one, two and three dimensions, and their transposes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..._absent import getattr_of
from ..._base import empty, ops
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_pad = ops["nn.functional.pad"]
_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(value, dims):
    """One number for all dimensions, or one for each."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


class _ConvNd(Module):
    """Common base: settings, parameters and their initialisation, `extra_repr`."""

    weight: Parameter
    # None if `bias=False`; `Any`, so that code that knows of a bias needs no check for None.
    bias: Parameter | Any

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # What `nn.functional.pad` takes: pairs, from the last dimension on.
        self._reversed_padding_repeated_twice = self._pairs()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pairs(self):
        if not isinstance(self.padding, str):
            return [n for n in reversed(self.padding) for _ in range(2)]
        if self.padding == "valid":
            return [0] * (2 * len(self.kernel_size))
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [n for total in reversed(totals) for n in (total // 2, total - total // 2)]

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        # a = sqrt(5) makes the bound of kaiming_uniform_ equal 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        dims = len(self.kernel_size)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * dims:
                parts.append(f"{name}={getattr(self, name)}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        # Modules pickled before there were padding modes.
        self.__dict__.setdefault("padding_mode", "zeros")


def _check(in_channels, out_channels, stride, padding, groups, padding_mode):
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of ('same', 'valid')")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")


class _Conv(_ConvNd):
    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        dims = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, dims),
            _each(stride, dims),
            padding if isinstance(padding, str) else _each(padding, dims),
            _each(dilation, dims),
            False,
            _each(0, dims),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = _pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return self._op(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """The cross-correlation of `input` with the kernels, and the bias added."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    r"""Cross-correlation over one dimension with learned kernels.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output: the number of kernels.
        kernel_size (int or tuple): size of a kernel.
        stride (int or tuple): step from one place of the kernel to the next.
        padding (int, tuple or str): elements added to both ends; 'valid' is none, 'same' keeps the size.
        dilation (int or tuple): step from one element of the kernel to the next.
        groups (int): channels are cut into so many groups, each with kernels of its own.
        bias (bool): whether a number is added to each output channel.
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'.

    Shape:
        input `(N, in_channels, L)` or `(in_channels, L)`, output likewise, where
        `L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`.

    Attributes:
        weight: `(out_channels, in_channels / groups, kernel_size)`, uniform in +-1/sqrt(fan_in).
        bias: `(out_channels)`, likewise; None without bias.
    """

    _dims, _op = 1, staticmethod(ops["conv1d"])


class Conv2d(_Conv):
    r"""Cross-correlation over two dimensions with learned kernels.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output: the number of kernels.
        kernel_size (int or tuple): height and width of a kernel.
        stride (int or tuple): step from one place of the kernel to the next.
        padding (int, tuple or str): elements added to both ends; 'valid' is none, 'same' keeps the size.
        dilation (int or tuple): step from one element of the kernel to the next.
        groups (int): channels are cut into so many groups, each with kernels of its own.
        bias (bool): whether a number is added to each output channel.
        padding_mode (str): 'zeros', 'reflect', 'replicate' or 'circular'.

    Shape:
        input `(N, in_channels, H, W)` or `(in_channels, H, W)`, output likewise, where
        `H_out = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`, and so for `W`.

    Attributes:
        weight: `(out_channels, in_channels / groups, *kernel_size)`, uniform in +-1/sqrt(fan_in).
        bias: `(out_channels)`, likewise; None without bias.
    """

    _dims, _op = 2, staticmethod(ops["conv2d"])


class Conv3d(_Conv):
    r"""Cross-correlation over three dimensions with learned kernels; arguments and attributes as for `Conv2d`.

    Shape:
        input `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`, output likewise; each size is
        `(n + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`.
    """

    _dims, _op = 3, staticmethod(ops["conv3d"])


class _ConvTransposeNd(_ConvNd):
    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        dims = self._dims
        super().__init__(
            in_channels,
            out_channels,
            _each(kernel_size, dims),
            _each(stride, dims),
            _each(padding, dims),
            _each(dilation, dims),
            True,
            _each(output_padding, dims),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input, output_size):
        """The output padding for which the result has the given size."""
        if output_size is None:
            return self.output_padding
        dims = self._dims
        given = list(output_size)
        if len(given) == input.dim():
            given = given[input.dim() - dims :]
        if len(given) != dims:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {dims} or {input.dim()} elements (got {len(given)})"
            )
        least = [
            (input.size(d - dims) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(dims)
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for low, n, high in zip(least, given, most, strict=True)):
            raise ValueError(
                f"requested an output size of {given}, but valid sizes range from {least} to {most} "
                f"(for an input of {tuple(input.shape[2:])})"
            )
        return [n - low for n, low in zip(given, least, strict=True)]

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of `input` with the kernels; `output_size` takes the place of `output_padding`.

        Raises:
            ValueError: no output padding gives `output_size`.
        """
        output_padding = self._output_padding(input, output_size)
        return self._op(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    r"""The transpose of a convolution over one dimension: `Conv1d`'s gradient by its input, with learned kernels.

    `output_padding` adds to one end of the output; `forward(input, output_size)` chooses it by the size of the output.

    Shape:
        input `(N, in_channels, L)` or `(in_channels, L)`, output likewise, where
        `L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.
    """

    _dims, _op = 1, staticmethod(ops["conv_transpose1d"])


class ConvTranspose2d(_ConvTransposeNd):
    r"""The transpose of a convolution over two dimensions: `Conv2d`'s gradient by its input, with learned kernels.

    `output_padding` adds to one end of the output; `forward(input, output_size)` chooses it by the size of the output.

    Shape:
        input `(N, in_channels, H, W)` or `(in_channels, H, W)`, output likewise; each size is
        `(n - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.
    """

    _dims, _op = 2, staticmethod(ops["conv_transpose2d"])


class ConvTranspose3d(_ConvTransposeNd):
    r"""The transpose of a convolution over three dimensions: `Conv3d`'s gradient by its input, with learned kernels.

    `output_padding` adds to one end of the output; `forward(input, output_size)` chooses it by the size of the output.

    Shape:
        input `(N, in_channels, D, H, W)` or `(in_channels, D, H, W)`, output likewise; each size is
        `(n - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`.
    """

    _dims, _op = 3, staticmethod(ops["conv_transpose3d"])


class _LazyConvXdMixin(LazyModuleMixin):
    """Weight and bias are materialized by the channels of the first input."""

    def _start(self, out_channels: int, bias: bool, device: DeviceLike | None, dtype: dtype | None) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws weight and bias anew, once they are initialized."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Materializes and draws weight and bias for inputs like `input`.

        Raises:
            RuntimeError: `input` has neither the dimensions of a batch nor those of one example.
            ValueError: `groups` does not divide its channels.
        """
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = (self.out_channels, self.in_channels)[:: -1 if self.transposed else 1]
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        batched = self._dims + 2
        if input.dim() not in (batched - 1, batched):
            raise RuntimeError(
                f"Expected {batched - 1}D (unbatched) or {batched}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        return input.shape[input.dim() - self._dims - 1]

    def _get_num_spatial_dims(self) -> int:
        return self._dims


class _LazyConv(_LazyConvXdMixin, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._start(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._start(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` without `in_channels`, which are those of the first input; it is a `Conv1d` from then on."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` without `in_channels`, which are those of the first input; it is a `Conv2d` from then on."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` without `in_channels`, which are those of the first input; it is a `Conv3d` from then on."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` without `in_channels`, which are those of the first input; it is a `ConvTranspose1d` from then on."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` without `in_channels`, which are those of the first input; it is a `ConvTranspose2d` from then on."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` without `in_channels`, which are those of the first input; it is a `ConvTranspose3d` from then on."""

    cls_to_become = ConvTranspose3d


__getattr__ = getattr_of(__name__)
