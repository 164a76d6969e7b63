"""Convolutions with dequantised weights."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......nn import functional as F
from .utils import ReferenceQuantizedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _Reference(ReferenceQuantizedModule):
    def __init__(self, *args: Any, weight_qparams: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._init_weight_qparams(weight_qparams, kwargs.get("device"))

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"

    @classmethod
    def from_float(cls, float_conv: Any, weight_qparams: Any) -> Any:
        """The convolution of a float one."""
        more = {"output_padding": float_conv.output_padding} if float_conv.transposed else {}
        made = cls(
            float_conv.in_channels, float_conv.out_channels, float_conv.kernel_size, stride=float_conv.stride,
            padding=float_conv.padding, dilation=float_conv.dilation, groups=float_conv.groups,
            bias=float_conv.bias is not None, padding_mode=float_conv.padding_mode, weight_qparams=weight_qparams, **more,
        )  # fmt: skip
        made.weight = nn.Parameter(float_conv.weight.detach())
        if float_conv.bias is not None:
            made.bias = nn.Parameter(float_conv.bias.detach())
        return made


class _ConvNd(_Reference):
    def forward(self, x: Any) -> Any:
        """The convolution."""
        return self._conv_forward(x, self.get_weight(), self.bias)


class _ConvTransposeNd(_Reference):
    def forward(self, x: Any, output_size: Any = None) -> Any:
        """The transposed convolution."""
        padding = self._output_padding(x, output_size)
        op = getattr(F, f"conv_transpose{len(self.kernel_size)}d")
        return op(x, self.get_weight(), self.bias, self.stride, self.padding, padding, self.groups, self.dilation)


class Conv1d(_ConvNd, nn.Conv1d):
    """`nn.Conv1d` whose weight is quantised and dequantised."""


class Conv2d(_ConvNd, nn.Conv2d):
    """`nn.Conv2d` whose weight is quantised and dequantised."""


class Conv3d(_ConvNd, nn.Conv3d):
    """`nn.Conv3d` whose weight is quantised and dequantised."""


class ConvTranspose1d(_ConvTransposeNd, nn.ConvTranspose1d):
    """`nn.ConvTranspose1d` whose weight is quantised and dequantised."""


class ConvTranspose2d(_ConvTransposeNd, nn.ConvTranspose2d):
    """`nn.ConvTranspose2d` whose weight is quantised and dequantised."""


class ConvTranspose3d(_ConvTransposeNd, nn.ConvTranspose3d):
    """`nn.ConvTranspose3d` whose weight is quantised and dequantised."""


def __dir__() -> list[str]:
    return __all__
