"""Scale and zero point: of a whole tensor, or of each channel. The rounding from numbers to integers and back is here alone.

Numbers are multiplied by the float32 reciprocal of the scale, rounded half to even, moved by the zero point and clamped. So do
PyTorch's kernels, and only so are the integers the same. NaN becomes the greatest integer there, and here.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

from .. import _C, _formats
from .._C import Tensor, ops
from .._formats import qscheme

# dtype -> that of the integers, and their least and greatest.
STORED = {
    _C.quint8: (_C.uint8, 0, 255),
    _C.qint8: (_C.int8, -128, 127),
    _C.qint32: (_C.int32, -(1 << 31), (1 << 31) - 1),
    # Several in a byte in files and in `int_repr`; in memory each has its own.
    _C.quint4x2: (_C.uint8, 0, 15),
    _C.quint2x4: (_C.uint8, 0, 3),
}
# Those whose integers are bytes, which the ops `_quantize_affine` and `_dequantize_affine` make and read in one pass.
_BYTES = (_C.quint8, _C.qint8)
_OF_INTEGERS = {_C.uint8: _C.quint8, _C.int8: _C.qint8, _C.int32: _C.qint32}
PER_BYTE = {_C.quint4x2: 2, _C.quint2x4: 4}


def f32(number):
    """A Python number as float32 holds it."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else -float("inf")


def stored(dtype):
    """The dtype of the integers of a quantised dtype, their least and their greatest. RuntimeError: it is no quantised dtype."""
    if dtype not in STORED:
        raise RuntimeError(
            f"ScalarType {dtype._scalar_type_name} is not supported in new_qtensor; expected torch.quint8, torch.qint8 or "
            "torch.qint32"
        )
    return STORED[dtype]


def dtype_of(integers):
    """The quantised dtype of integers."""
    if integers.dtype not in _OF_INTEGERS:
        raise RuntimeError(f"expected integers of dtype uint8, int8 or int32, got {integers.dtype}")
    return _OF_INTEGERS[integers.dtype]


def to_integers(x, dtype, inverse, zero_point, float_zero_point=False):
    """The integers of numbers.

    Args:
        x (Tensor): float32.
        inverse (float or Tensor): one divided by the scale, in float32.
        zero_point (int or Tensor): added after rounding.
        float_zero_point (bool): it is added before.
    """
    kind, low, high = stored(dtype)
    if dtype in _BYTES and not float_zero_point and x.dtype is _C.float32:
        return ops["_quantize_affine"](x, inverse, zero_point, kind)
    scaled = x * inverse
    if dtype is _C.qint32:
        # float32 does not hold all integers here, and float64 does.
        scaled = scaled.double()
    rounded = (scaled + zero_point).round_() if float_zero_point else scaled.round_().add_(zero_point)
    # `fmin` takes the number beside a NaN.
    bound = ops["full"]((), float(high), dtype=rounded.dtype, device=rounded.device)
    return ops["fmin"](rounded, bound).clamp_(min=low).to(kind)


def packed(integers, dtype):
    """Integers of fewer than eight bits as bytes of one dimension, the first in the lowest bits."""
    each, flat = PER_BYTE[dtype], integers.reshape(-1)
    bits, rest = 8 // each, -flat.numel() % each
    filled = ops["cat"]([flat, flat.new_zeros(rest)]) if rest else flat
    parts = filled.to(_C.int32).unflatten(0, (-1, each))
    return (parts << (ops["arange"](each, dtype=_C.int32) * bits)).sum(-1).to(_C.uint8)


def unpacked(data, dtype, size):
    """The integers of a shape in bytes of `packed`."""
    each = PER_BYTE[dtype]
    bits = 8 // each
    parts = (data.to(_C.int32)[:, None] >> (ops["arange"](each, dtype=_C.int32) * bits)) & ((1 << bits) - 1)
    return parts.reshape(-1)[: math.prod(size)].reshape(size).to(_C.uint8)


class PerTensor(NamedTuple):
    """One scale and zero point for all elements."""

    scale: float
    zero_point: int
    scheme: qscheme = _formats.per_tensor_affine

    def quantize(self, x: Tensor, dtype: Any) -> Tensor:
        """The integers of float32 numbers."""
        scale = f32(self.scale)
        inverse = f32(1.0 / scale) if scale else float("inf")
        return to_integers(x, dtype, inverse, self.zero_point)

    def dequantize(self, integers: Tensor) -> Tensor:
        """The float32 numbers of integers."""
        if integers.dtype == _C.int32:
            return integers.double().sub_(self.zero_point).float().mul_(f32(self.scale))
        return ops["_dequantize_affine"](integers, f32(self.scale), self.zero_point)

    def same(self, other: Any) -> bool:
        """Whether another quantiser has the same parameters."""
        return isinstance(other, PerTensor) and self[:2] == other[:2]

    def check(self, dtype: Any) -> None:
        """RuntimeError: the zero point is no integer of the dtype."""
        _, low, high = stored(dtype)
        for outside, words in ((self.zero_point > high, "above upper"), (self.zero_point < low, "below lower")):
            if outside:
                raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {self.zero_point} is {words} bound.")


class PerChannel(NamedTuple):
    """A scale and a zero point for each index of the dimension `axis`: float64 and int64, or both float32."""

    scales: Tensor
    zero_points: Tensor
    axis: int

    @property
    def scheme(self) -> qscheme:
        """`per_channel_affine`, or that of zero points which are floats."""
        floats = self.zero_points.dtype.is_floating_point
        return _formats.per_channel_affine_float_qparams if floats else _formats.per_channel_affine

    def _along(self, values, dims):
        return values.reshape([-1 if i == self.axis else 1 for i in range(dims)])

    def quantize(self, x: Tensor, dtype: Any) -> Tensor:
        """The integers of float32 numbers."""
        floats = self.zero_points.dtype.is_floating_point
        inverse = self._along(ops["reciprocal"](self.scales.float()), x.dim())
        zeros = self._along(self.zero_points.float(), x.dim())
        return to_integers(x, dtype, inverse, zeros, floats)

    def dequantize(self, integers: Tensor) -> Tensor:
        """The float32 numbers of integers."""
        zeros, scales = (self._along(t.float(), integers.dim()) for t in (self.zero_points, self.scales))
        return ops["_dequantize_affine"](integers, scales, zeros)

    def same(self, other: Any) -> bool:
        """Whether another quantiser has the same parameters."""
        return (
            isinstance(other, PerChannel)
            and self.axis == other.axis
            and self.scales.equal(other.scales)
            and self.zero_points.equal(other.zero_points)
        )

    def check(self, sizes: Any) -> None:
        """RuntimeError: there is no such dimension, or the parameters are not one for each of its indices."""
        if not 0 <= self.axis < len(sizes):
            raise RuntimeError(
                f"Channel axis out of range in per channel affine quantization. Got: {self.axis}Expected: [0, {len(sizes)})"
            )
        for name, given in (("scales", self.scales), ("zero_points", self.zero_points)):
            if given.dim() != 1 or given.numel() != sizes[self.axis]:
                raise RuntimeError(
                    f"length of {name} must equal to channel, expected {sizes[self.axis]} got, {given.numel()}"
                )


def per_channel(scales, zero_points, axis):
    """A quantiser of parameters of any dtype: zero points that are floats stay so."""
    kinds = (_C.float32, _C.float32) if zero_points.dtype.is_floating_point else (_C.float64, _C.int64)
    return PerChannel(scales.detach().to(kinds[0]), zero_points.detach().to(kinds[1]), int(axis))
