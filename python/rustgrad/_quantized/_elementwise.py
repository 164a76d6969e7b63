"""Functions of quantised numbers: on the integers where they keep order, else on the numbers, quantised again."""

from __future__ import annotations

from .. import _C
from .._C import Tensor, ops
from ..nn import functional
from ._quantizer import PerTensor, f32, stored
from ._tensor import is_quantized, made, with_value

# Functions whose results have a scale of their own: name -> (lowest result, reach of the results).
_BOUNDED = {"sigmoid": (0.0, 1.0), "hardsigmoid": (0.0, 1.0), "tanh": (-1.0, 2.0)}


def again(self, numbers, quantizer=None):
    """Numbers quantised with the parameters of a tensor, or other ones."""
    quantizer = quantizer or self._per_tensor()
    return made(quantizer.quantize(numbers, self.dtype), quantizer, self.dtype)


def fused(q):
    """The numbers as PyTorch's vectorised kernels take them: `scale * integer - scale * zero_point` with one rounding."""
    scale = f32(q._per_tensor().scale)
    shift = f32(scale * q.q_zero_point())
    if q.dtype is _C.qint32:
        return q._value.double().mul_(scale).sub_(shift).float()
    return ops["_scaled_shift"](q._value, scale, -shift)


def integer_of(self, number):
    """The integer that stands for a number in a tensor."""
    return self._per_tensor().quantize(_C.tensor(float(number), dtype=_C.float32), self.dtype).item()


def relu(input, inplace=False):
    """The zero point where the integer is less."""
    if isinstance(input._quantizer, PerTensor):
        integers = input._value.clamp(min=input.q_zero_point())
    else:
        quantizer = input._quantizer
        sizes = [-1 if i == quantizer.axis else 1 for i in range(input.dim())]
        integers = ops["maximum"](input._value, quantizer.zero_points.to(input._value.dtype).reshape(sizes))
    return _result(input, with_value(input, integers), inplace)


def _result(input, result, inplace):
    if not inplace:
        return result
    input._value.copy_(result._value)
    return input


def clamp(input, min=None, max=None):
    """The integers between those of the bounds."""
    low, high = (None if bound is None else integer_of(input, bound) for bound in (min, max))
    return with_value(input, input._value.clamp(low, high))


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """`clamp`."""
    return _result(input, clamp(input, min_val, max_val), inplace)


def relu6(input, inplace=False):
    """`clamp(0, 6)`."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """Of the numbers, with the parameters of the input."""
    return _result(input, again(input, functional.leaky_relu(fused(input), negative_slope)), inplace)


def threshold(input, threshold, value, inplace=False):
    """Of the numbers, with the parameters of the input."""
    x = input.dequantize()
    return _result(input, again(input, ops["where"](x > threshold, x, float(value))), inplace)


def gelu(input, approximate="none"):
    """Of the numbers, with the scale of the input, as float32 holds it."""
    quantizer = input._per_tensor()
    quantizer = quantizer._replace(scale=f32(quantizer.scale))
    return again(input, functional.gelu(input.dequantize(), approximate=approximate), quantizer)


def bounded(name):
    """The rule of a function with bounded results, whose scale divides their reach by the number of integers."""
    op, (low, reach) = ops.get(f"nn.functional.{name}") or ops[name], _BOUNDED[name]

    def rule(input, inplace=False):
        input._per_tensor()
        _, least, greatest = stored(input.dtype)
        steps = greatest - least + 1
        zero = 0 if least < -128 else round(least - low / reach * steps)
        return again(input, op(input.dequantize()), PerTensor(reach / steps, zero))

    return rule


def in_place(rule):
    """The rule that writes the result of another one, which has the parameters of the input."""

    def written(input, *args, **kwargs):
        return _result(input, rule(input, *args, **kwargs), True)

    return written


def comparison(op):
    """The rule of a comparison: of the numbers."""

    def rule(self, other):
        pair = (t.dequantize() if is_quantized(t) else t for t in (self, other))
        return op(*pair)

    return rule


def equal(input, other):
    """Whether both have the same integers and parameters."""
    both = is_quantized(input) and is_quantized(other) and input.dtype == other.dtype
    return both and input._quantizer.same(other._quantizer) and input._value.equal(other._value)


def ordered(op):
    """The rule of `sort`, `topk`, `max` and `min`: of the integers."""

    def rule(self, *args, **kwargs):
        self._per_tensor()
        if args and is_quantized(args[0]):
            other = args[0]
            if not other._quantizer.same(self._quantizer):
                raise RuntimeError(f"{op.__name__}: expected tensors with one scale and zero point")
            args = (other._value, *args[1:])
        result = op(self._value, *args, **kwargs)
        if isinstance(result, Tensor):
            return with_value(self, result)
        return type(result)((with_value(self, result[0]), *result[1:]))

    return rule


def averaged(op):
    """The rule of `mean` and `std`: of the numbers, with the parameters of the input."""

    def rule(self, *args, **kwargs):
        if kwargs.pop("dtype", None) not in (None, self.dtype):
            raise RuntimeError(f"{op.__name__}: dtype of a quantised tensor does not change")
        return again(self, op(self.dequantize(), *args, **kwargs))

    return rule


def empty_like(input, *, dtype=None, device=None, memory_format=None, **kwargs):
    """A tensor with the parameters of another one, whose integers are not set."""
    if dtype not in (None, input.dtype):
        raise RuntimeError(f"empty_like: expected dtype {input.dtype}, got {dtype}")
    options = {} if memory_format is None else {"memory_format": memory_format}
    return with_value(input, ops["empty_like"](input._value, device=device or input.device, **options))


def full_like(value):
    """The rule of `zeros_like` and `ones_like`."""

    def rule(input, **kwargs):
        return empty_like(input, **kwargs).fill_(value)

    return rule


def full_like_(input, fill_value, **kwargs):
    """A tensor of one number with the parameters of another one."""
    return empty_like(input, **kwargs).fill_(fill_value)
