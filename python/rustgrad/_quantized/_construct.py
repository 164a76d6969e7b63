"""The functions that make quantised tensors, and `dequantize`."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor, ops
from .._typing import DeviceLike
from ._quantizer import PerTensor, dtype_of, f32, per_channel, stored
from ._tensor import QuantizedTensor, made, shown

__all__ = [
    "_choose_qparams_per_tensor",
    "_empty_affine_quantized",
    "_empty_per_channel_affine_quantized",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "dequantize",
    "empty_quantized",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_per_tensor_dynamic",
]

# PyTorch takes no smaller scale for a range.
_SMALLEST = f32(6.1e-5)


def _checked(x, dtype):
    if isinstance(x, QuantizedTensor) or x.dtype != _C.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {x.dtype._scalar_type_name}")
    stored(dtype)
    return x.detach()


@shown
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: _C.dtype) -> Any:
    """A quantised tensor with one scale and zero point: `round(input / scale) + zero_point`, clamped.

    Args:
        input (Tensor or sequence of Tensor): float32; of a sequence there is a tuple of quantised tensors.
        scale (float or Tensor): one number; for a sequence a tensor with one for each.
        zero_point (int or Tensor): the integer that stands for zero; as `scale`.
        dtype (dtype): `quint8`, `qint8` or `qint32`.

    Raises:
        RuntimeError: another dtype, or a zero point that is no integer of it.
    """
    if isinstance(input, (list, tuple)):
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in zip(input, scale, zero_point, strict=True))
    x = _checked(input, dtype)
    quantizer = PerTensor(float(scale), int(zero_point))
    quantizer.check(dtype)
    return made(quantizer.quantize(x, dtype), quantizer, dtype)


@shown
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: _C.dtype) -> Tensor:
    """A quantised tensor with a scale and a zero point for each index of the dimension `axis`.

    Args:
        input (Tensor): float32.
        scales (Tensor): of shape (channels).
        zero_points (Tensor): of shape (channels); floats are added before rounding.
        dtype (dtype): `quint8`, `qint8` or `qint32`.

    Raises:
        RuntimeError: another dtype, no such dimension, or another number of channels.
    """
    x = _checked(input, dtype)
    quantizer = per_channel(scales, zero_points, axis)
    quantizer.check(x.shape)
    return made(quantizer.quantize(x, dtype), quantizer, dtype)


def chosen(low, high, least, greatest, symmetric=False):
    """The scale and zero point by which the integers `least` to `greatest` reach from `low` to `high` and hold zero exactly.

    Computed as PyTorch's kernels do, in float64: the zero point from that end of the range where rounding errs less.

    Raises:
        RuntimeError: an end of the range is not finite.
    """
    both = low < 0 < high and symmetric
    if both:
        half = (greatest - least) // 2
        reach = max(abs(low / -(half + 1)), abs(high / half))
        low, high = f32(-reach * (half + 1)), f32(reach * half)
    low, high = min(low, 0.0), max(high, 0.0)
    if not math.isfinite(high - low):
        raise RuntimeError(
            f"choose_qparams: expected a finite range, got {low} to {high}. Hint: look for NaN or infinity."
        )
    scale = (high - low) / (greatest - least)
    if f32(scale) == 0.0 or f32(1.0 / f32(scale)) == math.inf:
        scale = 0.1
    if scale < _SMALLEST:
        before, scale = scale, _SMALLEST
        if low == 0.0:
            high = f32(_SMALLEST * (greatest - least))
        elif high == 0.0:
            low = f32(-_SMALLEST * (greatest - least))
        else:
            low, high = f32(low * f32(_SMALLEST / before)), f32(high * f32(_SMALLEST / before))
    from_low = abs(least) - abs(low / scale) < abs(greatest) - abs(high / scale)
    zero = least - low / scale if from_low else greatest - high / scale
    zero = (least + greatest) / 2 if both else zero
    return scale, least if zero < least else greatest if zero > greatest else round(zero)


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and zero point of `quint8` for the range of a tensor; with `reduce_range` for seven bits."""
    if input.numel() == 0:
        return chosen(0.0, 0.0, 0, 127 if reduce_range else 255)
    low, high = (t.item() for t in ops["aminmax"](input.detach()))
    return chosen(low, high, 0, 127 if reduce_range else 255)


@shown
def quantize_per_tensor_dynamic(input: Tensor, dtype: _C.dtype, reduce_range: bool) -> Tensor:
    """`quantize_per_tensor` with the scale and zero point of the tensor's range.

    Args:
        input (Tensor): float32.
        dtype (dtype): `quint8` or `qint8`.
        reduce_range (bool): half of the integers are used, so that sums of products fit in 16 bits on older processors.
    """
    x = _checked(input, dtype)
    if dtype not in (_C.quint8, _C.qint8):
        raise RuntimeError(f"quantize_per_tensor_dynamic: expected dtype quint8 or qint8, got {dtype}")
    _, least, greatest = stored(dtype)
    if reduce_range:
        least, greatest = (least // 2, greatest // 2) if least else (0, 127)
    low, high = (t.item() for t in ops["aminmax"](x)) if x.numel() else (0.0, 0.0)
    return quantize_per_tensor(x, *chosen(low, high, least, greatest), dtype)


@shown
def dequantize(input: Any) -> Any:
    """The float32 numbers of a quantised tensor, or of each in a sequence; other tensors converted to float32.

    Args:
        input (Tensor or sequence of Tensor): its first name in PyTorch is `input`, of a sequence `tensors`.
    """
    if isinstance(input, (list, tuple)):
        return tuple(dequantize(t) for t in input)
    return input.dequantize()


def _empty(size, device):
    device = "cpu" if device is None else device
    return [int(n) for n in size], device


def _empty_affine_quantized(
    *size: Any,
    dtype: _C.dtype = _C.quint8,
    scale: float = 1.0,
    zero_point: int = 0,
    device: DeviceLike = None,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A quantised tensor whose integers are not set, with one scale and zero point."""
    sizes, device = _empty(size[0] if len(size) == 1 and not isinstance(size[0], int) else size, device)
    integers = ops["empty"](sizes, dtype=stored(dtype)[0], device=device)
    if memory_format is not None:
        integers = integers.contiguous(memory_format=memory_format)
    return made(integers, PerTensor(float(scale), int(zero_point)), dtype)


def _empty_per_channel_affine_quantized(
    size: Any,
    *,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    dtype: _C.dtype = _C.quint8,
    device: DeviceLike = None,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A quantised tensor whose integers are not set, with parameters for each channel."""
    sizes, device = _empty(size, device)
    quantizer = per_channel(scales, zero_points, axis)
    quantizer.check(sizes)
    return made(ops["empty"](sizes, dtype=stored(dtype)[0], device=device), quantizer, dtype)


def empty_quantized(size: Any, qtensor: Tensor, *, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """A quantised tensor of another shape with the parameters of `qtensor`, whose integers are not set."""
    quantizer = qtensor._quantizer
    sizes, device = _empty(size, qtensor.device if device is None else device)
    if not isinstance(quantizer, PerTensor):
        quantizer.check(sizes)
    dtype = dtype or qtensor.dtype
    return made(ops["empty"](sizes, dtype=stored(dtype)[0], device=device), quantizer, dtype)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """A quantised tensor of a copy of integers: of `uint8` a `quint8`, of `int8` a `qint8`, of `int32` a `qint32`."""
    return made(input.detach().clone(), PerTensor(float(scale), int(zero_point)), dtype_of(input))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """A quantised tensor of a copy of integers, with parameters for each channel."""
    quantizer = per_channel(scale, zero_point, axis)
    quantizer.check(input.shape)
    return made(input.detach().clone(), quantizer, dtype_of(input))
