"""Functions of quantised tensors with the scale and the zero point of their results."""

from __future__ import annotations

import warnings
from typing import Any

import rustgrad as torch

from ....nn import functional as F
from ....nn.modules.utils import _pair, _single, _triple

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def _check(name: str, input: torch.Tensor) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Averages to an output size, with the scale of the input. ValueError: it is not quantised."""
    _check("functional.adaptive_avg_pool2d", input)
    return F.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Averages to an output size, with the scale of the input. ValueError: it is not quantised."""
    _check("functional.adaptive_avg_pool3d", input)
    return F.adaptive_avg_pool3d(input, output_size)


def avg_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:  # fmt: skip
    """Averages of windows, with the scale of the input. ValueError: it is not quantised."""
    _check("avg_pool2d", input)
    return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:  # fmt: skip
    """Averages of windows, with the scale of the input. ValueError: it is not quantised."""
    _check("avg_pool3d", input)
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _conv(n, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype):
    if padding_mode != "zeros":
        raise NotImplementedError("Only zero-padding is supported!")
    if input.dtype != torch.quint8:
        raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
    if weight.dtype != torch.qint8:
        raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
    if input.ndim != n + 2:
        raise ValueError(f"Input must be a {n + 2}-dimensional tensor!")
    each = (_single, _pair, _triple)[n - 1]
    ops = torch.ops.quantized
    packed = getattr(ops, f"conv{n}d_prepack")(weight, bias, each(stride), each(padding), each(dilation), groups)
    return getattr(ops, f"conv{n}d")(input, packed, scale, zero_point)


def conv1d(
    input: Any, weight: Any, bias: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = torch.quint8,
) -> Any:  # fmt: skip
    """A convolution of a quantised input (N, C, L) with a quantised weight: see `nn.functional.conv1d`."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)


def conv2d(
    input: Any, weight: Any, bias: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = torch.quint8,
) -> Any:  # fmt: skip
    """A convolution of a quantised input (N, C, H, W) with a quantised weight: see `nn.functional.conv2d`."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)


def conv3d(
    input: Any, weight: Any, bias: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    padding_mode: str = "zeros", scale: float = 1.0, zero_point: int = 0, dtype: Any = torch.quint8,
) -> Any:  # fmt: skip
    """A convolution of a quantised input (N, C, D, H, W) with a quantised weight: see `nn.functional.conv3d`."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups, padding_mode, scale, zero_point, dtype)


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    """Resizing, with the scale of the input. ValueError: it is not quantised."""
    _check("interpolate", input)
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input: Any, weight: Any, bias: Any = None, scale: Any = None, zero_point: Any = None) -> Any:
    """`input @ weight.T + bias`, quantised; by default with the scale and the zero point of the input."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    packed = torch.ops.quantized.linear_prepack(weight, bias)
    return torch.ops.quantized.linear(input, packed, scale, zero_point)


def max_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest element of each window. NotImplementedError: indices are asked for."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)


def max_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest element of each window. NotImplementedError: indices are asked for."""
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)


def celu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """`x if x > 0 else alpha * (exp(x / alpha) - 1)`. ValueError: the input is not quantised."""
    _check("celu", input)
    return torch.ops.quantized.celu(input, scale, zero_point, alpha)


def leaky_relu(
    input: Any, negative_slope: float = 0.01, inplace: bool = False, scale: Any = None, zero_point: Any = None
) -> Any:
    """`x if x > 0 else negative_slope * x`; by default with the scale of the input."""
    if scale is not None and zero_point is not None:
        if inplace:
            raise AssertionError("Cannot rescale with `inplace`")
        return torch.ops.quantized.leaky_relu(input, negative_slope, False, scale, zero_point)
    return F.leaky_relu(input, negative_slope, inplace)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """`clamp`. ValueError: the input is not quantised."""
    _check("hardtanh", input)
    return F.hardtanh(input, min_val, max_val, inplace)


def hardswish(input: Any, scale: float, zero_point: int) -> Any:
    """`x * relu6(x + 3) / 6`. ValueError: the input is not quantised."""
    _check("hardswish", input)
    return torch.ops.quantized.hardswish(input, scale, zero_point)


def threshold(input: Any, threshold: float, value: float) -> Any:
    """`x if x > threshold else value`. ValueError: the input is not quantised, or an argument is None."""
    _check("threshold", input)
    if threshold is None:
        raise ValueError("Input to 'threshold' must be specified!")
    if value is None:
        raise ValueError("Input to 'value' must be specified!")
    return F.threshold(input, threshold, value)


def elu(input: Any, scale: float, zero_point: int, alpha: float = 1.0) -> Any:
    """`x if x > 0 else alpha * (exp(x) - 1)`. ValueError: the input is not quantised."""
    _check("elu", input)
    return torch.ops.quantized.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """`relu6(x + 3) / 6`. ValueError: the input is not quantised."""
    _check("hardsigmoid", input)
    return F.hardsigmoid(input)


def clamp(input: Any, min_: float, max_: float) -> Any:
    """The numbers between two bounds. ValueError: the input is not quantised."""
    _check("clamp", input)
    return torch.clamp(input, min_, max_)


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None
) -> Any:
    """Deprecated: `interpolate`."""
    warnings.warn(
        "nn.quantized.functional.upsample is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Deprecated: `interpolate` with mode "bilinear" and aligned corners."""
    warnings.warn(
        "nn.quantized.functional.upsample_bilinear is deprecated. Use nn.quantized.functional.interpolate instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Deprecated: `interpolate` with mode "nearest"."""
    warnings.warn(
        "nn.quantized.functional.upsample_nearest is deprecated. Use nn.quantized.functional.interpolate instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def __dir__() -> list[str]:
    return __all__
