"""Weights as the quantised products take them. Sums of products are exact integers.

On the CPU, products of bytes are summed in int32 where the weight's zero points are zero. Elsewhere they are float products that
round nothing. The integers of an input, about its zero point, are at most 255 in size. So all partial sums of a product with a row of
weights are integers below 2**24, which float32 holds, where 255 times the sum of the row's absolute integers is. Beyond that the columns
of a linear layer's weight are taken in groups, whose sums are added in float64, and a convolution is computed in float64.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor, ops
from .._formats import channels_last
from ..amp import autocast
from ..nn import functional
from ._quantizer import PerChannel, PerTensor, f32, to_integers
from ._script_object import CLASSES
from ._tensor import is_quantized, made

_EXACT = 1 << 24
# So many products of a number below 256 and one up to 128 fit int32.
_TERMS = 1 << 16


def _tuple(value, n):
    value = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    return value * n if len(value) == 1 and n > 1 else value


def _exactly(op, x, *args):
    """A product without autocast, whose dtypes do not hold the integers."""
    if _C._autocast_state(x.device.type)[0]:
        with autocast(x.device.type, enabled=False):
            return op(x, *args)
    return op(x, *args)


class Packed:
    """A quantised weight and a bias.

    Args:
        weight (Tensor): `qint8`, with one scale or with those of its output channels.
        bias (Tensor, optional): float32, one number for each output channel.
        channels (int): the dimension of the weight that is the output's channels.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, channels: int = 0) -> None:
        if not is_quantized(weight):
            raise RuntimeError(f"prepack: expected a quantised weight, got one of {weight.dtype}")
        if weight.dtype is not _C.qint8:
            raise RuntimeError(f"prepack: expected a weight of dtype qint8, got {weight.dtype}")
        quantizer = weight._quantizer
        if isinstance(quantizer, PerChannel) and quantizer.axis != channels:
            raise RuntimeError(
                f"prepack: expected scales along dimension {channels} of the weight, got {quantizer.axis}"
            )
        if isinstance(quantizer, PerTensor):
            # The products have it in float32, and so it is given back.
            weight = made(weight._value, quantizer._replace(scale=f32(quantizer.scale)), weight.dtype)
        self._weight, self._bias = weight, None if bias is None else bias.detach()
        self._exact: dict[str, Any] = {}
        self._channels = channels

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias."""
        return self._weight, self._bias

    def weight(self) -> Tensor:
        """The quantised weight."""
        return self._weight

    def bias(self) -> Tensor | None:
        """The bias, or None."""
        return self._bias

    def parts(self) -> Any:
        """The state of a pickle."""
        return self.unpack()

    def scales(self) -> Any:
        """The float32 scales: a number, or a tensor with one for each output channel."""
        quantizer = self._weight._quantizer
        return f32(quantizer.scale) if isinstance(quantizer, PerTensor) else quantizer.scales.float()

    def takes_bytes(self, x: Tensor, terms: int) -> bool:
        """Whether the product with an input is one of bytes, given how many terms a sum has."""
        kept = self._exact.get("symmetric")
        if kept is None:
            quantizer = self._weight._quantizer
            points = quantizer.zero_point if isinstance(quantizer, PerTensor) else quantizer.zero_points.any().item()
            kept = self._exact["symmetric"] = not points
        return kept and 0 < terms <= _TERMS and x._value.device.type == self._weight._value.device.type == "cpu"

    def integers(self, dims: int) -> Tensor:
        """The weight's integers about its zero points, in the narrowest dtype whose products with an input are exact."""
        kept = self._exact.get("integers")
        if kept is None:
            kept = self._about_zero(dims)
            # Groups share channels of the weight of a transposed convolution, whose sums are over fewer elements still.
            kept = kept if _EXACT > self._worst(kept, dims) else kept.double()
            self._exact["integers"] = kept
        return kept

    def _about_zero(self, dims):
        quantizer = self._weight._quantizer
        value = self._weight._value.float()
        if isinstance(quantizer, PerTensor):
            return value.sub_(quantizer.zero_point)
        return value.sub_(quantizer._along(quantizer.zero_points.float(), dims))

    def _worst(self, integers, dims):
        """The greatest sum that an output may have, without signs."""
        others = [d for d in range(dims) if d != self._channels]
        return 255 * integers.abs().double().sum(others).max().item() if integers.numel() else 0


class LinearPackedParams(Packed):
    """The weight of `linear`: (outputs, inputs)."""

    qualified = "quantized.LinearPackedParamsBase"

    def apply_dynamic(self, x: Tensor, reduce_range: bool = False) -> Tensor:
        """The product with a float32 input, which is quantised by its own range."""
        return dynamic(self, x, reduce_range)

    def sums(self, x: Tensor) -> Tensor:
        """Exact sums of products of an input's integers about their zero point."""
        outputs, inputs = self._weight.shape
        if x.shape[-1] == inputs and self.takes_bytes(x, inputs):
            weight, zero_point = self._weight._value.t(), x._per_tensor().zero_point
            return ops["_byte_mm"](x._value.reshape(-1, inputs), weight, zero_point).reshape(*x.shape[:-1], outputs)
        pieces, integers = self._pieces(), about_zero(x)
        if len(pieces) == 1:
            return _exactly(functional.linear, integers, pieces[0])
        parts = integers.split([piece.shape[1] for piece in pieces], -1)
        first, *others = (_exactly(functional.linear, x, w).double() for x, w in zip(parts, pieces, strict=True))
        for other in others:
            first.add_(other)
        return first

    def _pieces(self):
        """The weight's integers in groups of columns whose products are exact in float32."""
        kept = self._exact.get("pieces")
        if kept is None:
            whole, count = self._about_zero(2), 1
            while True:
                kept = [piece.contiguous() for piece in whole.chunk(count, 1)]
                if all(self._worst(piece, 2) < _EXACT for piece in kept):
                    break
                count *= 2
            self._exact["pieces"] = kept
        return kept


class HalfPackedParams:
    """A weight rounded to float16, and a bias."""

    qualified = LinearPackedParams.qualified

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        limit = 65504.0
        self._weight = weight.detach().float().clamp(-limit, limit).half().float()
        self._bias = None if bias is None else bias.detach()

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight, as float32, and the bias."""
        return self._weight, self._bias

    def parts(self) -> Any:
        """The state of a pickle."""
        return self.unpack()

    def apply_dynamic(self, x: Tensor, reduce_range: bool = False) -> Tensor:
        """The product with a float32 input."""
        return functional.linear(x, self._weight, self._bias)


class ConvPackedParams(Packed):
    """The weight of a convolution with its geometry."""

    def __init__(
        self, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, transpose: bool = False,
        output_padding: Any = 0,
    ) -> None:  # fmt: skip
        n = weight.dim() - 2
        super().__init__(weight, bias, 1 if transpose else 0)
        self._stride, self._padding, self._dilation = (_tuple(v, n) for v in (stride, padding, dilation))
        self._output_padding, self._groups, self._transpose = _tuple(output_padding, n), groups, transpose

    @property
    def qualified(self) -> str:
        """The name of its class: a convolution of one dimension has that of two."""
        return f"quantized.Conv{max(len(self._stride), 2)}dPackedParamsBase"

    def parts(self) -> Any:
        """The state of a pickle: a version, the geometry and the weight, the bias. One dimension is written as two, of which the first is 1."""
        n, weight = max(len(self._stride), 2), self._weight
        weight = weight.unsqueeze(2) if weight.dim() == 3 else weight
        sizes = [
            ((u,) * (n - len(v)) + v)
            for u, v in ((1, self._stride), (0, self._padding), (1, self._dilation), (0, self._output_padding))
        ]
        numbers = [n, *(number for size in sizes for number in size), self._groups, int(self._transpose)]
        geometry = _C.tensor(numbers, dtype=_C.int16)
        return "2", [geometry, weight], [self._bias]

    def stride(self) -> list[int]:
        """The stride of each dimension."""
        return list(self._stride)

    def padding(self) -> list[int]:
        """The padding of each dimension."""
        return list(self._padding)

    def output_padding(self) -> list[int]:
        """The additional size of each dimension of a transposed convolution's output."""
        return list(self._output_padding)

    def dilation(self) -> list[int]:
        """The dilation of each dimension."""
        return list(self._dilation)

    def groups(self) -> int:
        """The number of groups."""
        return self._groups

    def transpose(self) -> bool:
        """Whether the convolution is transposed."""
        return self._transpose

    def sums(self, x: Tensor) -> Tensor:
        """Exact sums of products of an input's integers about their zero point."""
        n = self._weight.dim() - 2
        plain = n == 2 and self._groups == 1 and not self._transpose and x.shape[1] == self._weight.shape[1]
        if plain and self.takes_bytes(x, self._weight[0].numel()):
            return self._sums_of_bytes(x)
        weight = self.integers(n + 2)
        x = about_zero(x).to(weight.dtype)
        if self._transpose:
            op = getattr(functional, f"conv_transpose{n}d")
            return _exactly(
                op, x, weight, None, self._stride, self._padding, self._output_padding, self._groups, self._dilation
            )
        op = getattr(functional, f"conv{n}d")
        return _exactly(op, x, weight, None, self._stride, self._padding, self._dilation, self._groups)

    def _sums_of_bytes(self, x):
        weight = self._exact.get("bytes")
        if weight is None:
            weight = self._exact["bytes"] = self._weight._value.contiguous(memory_format=channels_last)
        windows, zero_point = (self._stride, self._padding, self._dilation), x._per_tensor().zero_point
        return ops["_byte_conv2d"](x._value, weight, *windows, zero_point)


def _linear_of(parts):
    return LinearPackedParams(*parts) if is_quantized(parts[0]) else HalfPackedParams(*parts)


CLASSES[LinearPackedParams.qualified] = _linear_of


def _conv_of(parts):
    version, geometry, tensors = parts
    if str(version) == "3":  # numbers, and tensors of which the first is left free
        numbers, weight, bias = list(geometry), tensors[1], tensors[2]
    else:
        numbers, weight, bias = geometry[0].tolist(), geometry[1], tensors[0]
    n = numbers[0]
    stride, padding, dilation, output_padding = (numbers[1 + n * i : 1 + n * (i + 1)] for i in range(4))
    groups, transpose = numbers[4 * n + 1 :]
    return ConvPackedParams(weight, bias, stride, padding, dilation, groups, bool(transpose), output_padding)


CLASSES["quantized.Conv2dPackedParamsBase"] = CLASSES["quantized.Conv3dPackedParamsBase"] = _conv_of


def _over_channels(values, sums, at):
    """Values of the output channels in the shape of the sums, whose dimension `at` they are; a number as it is."""
    if not isinstance(values, Tensor):
        return values
    return values.reshape([-1 if d == at % sums.dim() else 1 for d in range(sums.dim())])


def _scales(packed, sums, at, scale):
    """The product of an input's and the weight's scales, for each output channel, in float32."""
    weights = packed.scales()
    if isinstance(weights, float):
        return f32(f32(scale) * weights)
    if getattr(packed, "_transpose", False):
        weights = weights.repeat(packed._groups)
    return _over_channels(weights * f32(scale), sums, at)


def about_zero(x):
    """An input's integers about its zero point, as float32: exact for eight bits."""
    return ops["_dequantize_affine"](x._value, 1.0, x._per_tensor().zero_point)


def requantized(packed, x, at, scale, zero_point, relu=False, added=None):
    """A quantised product: exact sums, the bias, a new scale.

    Args:
        packed (Packed): the weight.
        x (Tensor): `quint8` or `qint8`, with one scale.
        at (int): the dimension of the result that is the weight's output channels.
        added (Tensor, optional): a quantised tensor that is added before rounding.
    """
    if not is_quantized(x) or x.dtype not in (_C.quint8, _C.qint8):
        raise RuntimeError(f"expected an input of dtype quint8 or qint8, got {x.dtype}")
    sums = packed.sums(x)
    scales = _scales(packed, sums, at, x.q_scale())
    if packed._bias is not None:
        # int32 sums become float32 as they are read.
        sums = sums.float() if sums.dtype is _C.float64 else sums
        sums = sums + _over_channels(packed._bias.float(), sums, at) / scales
    sums = sums.float()
    factor = scales / f32(scale)
    factor = factor if isinstance(factor, Tensor) else f32(factor)
    if added is not None:
        sums, factor = sums.mul_(scales).add_(added.dequantize()), f32(1.0 / f32(scale))
    integers = to_integers(sums, x.dtype, factor, int(zero_point))
    if relu:
        integers = integers.clamp_(min=int(zero_point))
    return made(integers, PerTensor(float(scale), int(zero_point)), x.dtype)


def by_range(x, reduce_range):
    """A float32 input as `quint8`, with the scale and zero point of its range."""
    from ._construct import _choose_qparams_per_tensor

    if is_quantized(x) or x.dtype != _C.float32:
        raise RuntimeError(f"dynamic product: expected a float32 input, got one of {x.dtype}")
    quantizer = PerTensor(*_choose_qparams_per_tensor(x, reduce_range))
    return made(quantizer.quantize(x.detach(), _C.quint8), quantizer, _C.quint8)


def dynamic(packed, x, reduce_range=False, relu=False):
    """A linear function of a float32 input, which is quantised by its own range: a float32 result."""
    x = by_range(x, reduce_range)
    # float64 holds the products exactly, so each result is rounded once, as by a fused multiplication.
    sums = packed.sums(x).double().mul_(_scales(packed, x, -1, x.q_scale()))
    if packed._bias is not None:
        sums = sums.add_(packed._bias)
    sums = sums.float()
    return sums.relu_() if relu else sums
