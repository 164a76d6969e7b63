"""Ops that move elements of quantised tensors, copy them or write them: the integers move, the quantiser stays."""

from __future__ import annotations

from .. import _C
from .._C import Tensor, ops
from ..nn import functional
from ._quantizer import PerTensor, to_integers
from ._tensor import is_quantized, made, with_value

# Ops that keep the channels of a tensor apart: others would need strides of their quantiser.
_OF_CHANNELS = set(
    "clone contiguous __getitem__ select narrow _slice squeeze unsqueeze unbind split chunk split_with_sizes index_select".split()
)
_WHOLE = {"clone", "contiguous"}


def _of_sizes(name, sizes, quantizer):
    """The error of PyTorch for an op that would change the dimension of channels."""
    if name in ("view", "reshape", "flatten", "unflatten", "ravel"):
        channels = quantizer.scales.numel()
        raise RuntimeError(f"length of scales must equal to channel, expected {sizes[0]} got, {channels}")
    raise RuntimeError(f"{name}: Setting strides is possible only on uniformly quantized tensor")


def _channels(self):
    """The channel of each element."""
    quantizer = self._quantizer
    sizes = [-1 if i == quantizer.axis else 1 for i in range(self.dim())]
    return ops["arange"](quantizer.scales.numel()).reshape(sizes).expand(self.shape)


def _line(channels, dim):
    """The channels along a dimension, of the first elements."""
    for other in reversed(range(channels.dim())):
        if other != dim:
            channels = channels.select(other, 0)
    return channels


def _with_channels(self, integers, channels):
    """A quantised tensor of moved integers, with the quantiser of the channels that are left."""
    quantizer = self._quantizer
    if channels.numel() == 0:
        raise RuntimeError("a quantised tensor with parameters for each channel has no part without elements")
    for dim in range(channels.dim()):
        line = _line(channels, dim)
        if line.numel() > 1 and line[0] != line[1]:
            scales, zeros = (t.index_select(0, line) for t in (quantizer.scales, quantizer.zero_points))
            return made(integers, quantizer._replace(scales=scales, zero_points=zeros, axis=dim), self.dtype)
    at = int(channels.reshape(-1)[0])
    return made(integers, PerTensor(quantizer.scales[at].item(), int(quantizer.zero_points[at])), self.dtype)


def move(op):
    """The rule of an op that moves the elements of one tensor; other arguments are no quantised tensors, or models of a shape."""
    name = op.__name__

    def rule(self, *args, **kwargs):
        args = [a._value if is_quantized(a) else a for a in args]
        kwargs = {k: a._value if is_quantized(a) else a for k, a in kwargs.items()}
        if not is_quantized(self):
            return op(self, *args, **kwargs)
        if name == "view" and isinstance(args[0] if args else kwargs.get("dtype"), _C.dtype):
            raise RuntimeError("view: the dtype of a quantised tensor does not change. Hint: call .int_repr().")
        result = op(self._value, *args, **kwargs)
        if isinstance(self._quantizer, PerTensor) or name in _WHOLE:
            return [with_value(self, t) for t in result] if isinstance(result, list) else _several(self, result)
        if name not in _OF_CHANNELS:
            several = isinstance(result, (tuple, list))
            _of_sizes(name, (result[0] if several else result).shape, self._quantizer)
        channels = op(_channels(self), *args, **kwargs)
        if isinstance(result, (tuple, list)):
            return tuple(_with_channels(self, r, c) for r, c in zip(result, channels, strict=True))
        return _with_channels(self, result, channels)

    return rule


def _several(self, result):
    return tuple(with_value(self, t) for t in result) if isinstance(result, tuple) else with_value(self, result)


def move_(op):
    """The rule of an op that changes the dimensions of a tensor in place."""

    def rule(self, *args, **kwargs):
        self._per_tensor()
        op(self._value, *args, **kwargs)
        self._set(with_value(self, self._value))
        return self

    return rule


def joined(op, tensors, args, kwargs, quantizer=None):
    """Tensors joined by `cat` or `stack`, with the quantiser of the first or another one."""
    first = tensors[0]
    for t in tensors:
        if not is_quantized(t):
            raise RuntimeError(f"{op.__name__}: expected quantised tensors, got one of {t.dtype}")
        if t.dtype != first.dtype:
            raise RuntimeError(f"All dtypes must be the same, got {first.dtype} and {t.dtype}")
        t._per_tensor()
    quantizer = quantizer or first._quantizer
    parts = [t._value if t._quantizer.same(quantizer) else quantizer.quantize(t.dequantize(), t.dtype) for t in tensors]
    return made(op(parts, *args, **kwargs), quantizer, first.dtype)


def join(op):
    """The rule of an op on a list of tensors: all get the quantiser of the first."""

    def rule(tensors, *args, **kwargs):
        tensors = list(tensors) if isinstance(tensors, (tuple, list)) else [tensors]
        return joined(op, tensors, args, kwargs)

    return rule


def copy_(self, src, non_blocking=False):
    """Writes the elements of another tensor: numbers are quantised, a quantised tensor is copied with its quantiser.

    Raises:
        RuntimeError: the tensor written is not quantised, or the other one is and has another dtype.
    """
    if not is_quantized(self):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor "
            "from a quantized Tensor"
        )
    if not is_quantized(src):
        if src.dtype != _C.float32:
            raise RuntimeError(
                f"Quantized copy only works with kFloat as source Tensor, got {src.dtype._scalar_type_name}"
            )
        self._value.copy_(self._quantizer.quantize(src.detach().expand(self.shape), self.dtype))
        return self
    if src.dtype != self.dtype:
        raise RuntimeError(
            f"Quantized Copy only works with Quantized Tensors of the same dtype; expected {self.dtype}, got {src.dtype}"
        )
    if src.qscheme() is not self.qscheme():
        raise RuntimeError("Quantized Copy only works with same qscheme")
    self._value.copy_(src._value)
    self._quantizer = src._quantizer
    return self


def fill_(self, value):
    """Writes the integer of a number to all elements."""
    number = ops["full"](() if isinstance(self._quantizer, PerTensor) else self.shape, float(value), dtype=_C.float32)
    self._value.copy_(self._quantizer.quantize(number, self.dtype).expand(self.shape))
    return self


def put(self, index, value):
    """Assignment to items: of a number, of float32 numbers, or of a quantised tensor."""
    if not is_quantized(self):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize"
        )
    quantizer = self._quantizer
    if not isinstance(quantizer, PerTensor):
        _put_in_channels(self, index, value)
        return
    if is_quantized(value):
        if value.dtype != self.dtype:
            raise RuntimeError(f"expected a value of {self.dtype}, got {value.dtype}")
        same = value._quantizer.same(quantizer)
        value = value._value if same else quantizer.quantize(value.dequantize(), self.dtype)
    else:
        value = value if isinstance(value, Tensor) else _C.tensor(value, dtype=_C.float32)
        value = quantizer.quantize(value.detach().float(), self.dtype)
    self._value[index] = value


def _put_in_channels(self, index, value):
    """`put` where each channel has a scale: elements take those of their channel."""
    if is_quantized(value):
        raise RuntimeError(
            "a quantised value is not assigned to a tensor with a scale for each channel. Hint: dequantize()"
        )
    quantizer = self._quantizer
    channels = _channels(self)[index]
    value = value if isinstance(value, Tensor) else _C.tensor(value, dtype=_C.float32)
    inverse, zeros = (t[channels] for t in (ops["reciprocal"](quantizer.scales.float()), quantizer.zero_points.float()))
    floats = quantizer.zero_points.dtype.is_floating_point
    numbers = value.detach().float().expand(channels.shape)
    self._value[index] = to_integers(numbers, self.dtype, inverse, zeros, floats)


def index_put_(self, indices, values, accumulate=False):
    """Assignment to items by tensors of indices. RuntimeError: values are to be added."""
    if accumulate:
        raise RuntimeError("index_put for quantized tensors is currently only supported for accumulate=False")
    put(self, tuple(indices), values)
    return self


def index_put(self, indices, values, accumulate=False):
    """The tensor with other items: `index_put_` of a copy."""
    return index_put_(self.clone(), indices, values, accumulate)


def unsqueeze(self, dim):
    """A dimension of size one more; channels stay those of their dimension."""
    integers, quantizer = self._value.unsqueeze(dim), self._quantizer
    if not isinstance(quantizer, PerTensor):
        at = dim % integers.dim()
        quantizer = quantizer._replace(axis=quantizer.axis + (at <= quantizer.axis))
    return made(integers, quantizer, self.dtype)


def squeeze(self, dim=None):
    """Dimensions of size one less. RuntimeError: one is that of the channels."""
    quantizer = self._quantizer
    integers = self._value.squeeze() if dim is None else self._value.squeeze(dim)
    if isinstance(quantizer, PerTensor):
        return with_value(self, integers)
    given = (
        range(self.dim())
        if dim is None
        else [d % self.dim() for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    )
    gone = [d for d in given if self.shape[d] == 1]
    if quantizer.axis in gone:
        raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
    return made(integers, quantizer._replace(axis=quantizer.axis - sum(d < quantizer.axis for d in gone)), self.dtype)


def masked_fill(self, mask, value):
    """The tensor with the integer of a number where a mask is True."""
    return masked_fill_(self.clone(), mask, value)


def masked_fill_(self, mask, value):
    """Writes the integer of a number where a mask is True."""
    quantizer = self._per_tensor()
    number = quantizer.quantize(_C.tensor(float(value), dtype=_C.float32), self.dtype)
    self._value.masked_fill_(mask, number.item())
    return self


def pad(input, pad, mode="constant", value=None):
    """A constant is quantised; other modes move integers."""
    pad_of = functional.pad
    quantizer = input._per_tensor()
    if mode != "constant":
        return with_value(input, pad_of(input._value.double(), pad, mode).to(input._value.dtype))
    number = quantizer.quantize(_C.tensor(float(value or 0), dtype=_C.float32), input.dtype)
    return with_value(input, pad_of(input._value, pad, "constant", number.item()))
