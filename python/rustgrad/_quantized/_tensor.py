"""Quantised tensors: a subclass of `Tensor` that holds its integers as an ordinary tensor, beside a quantiser.

As with sparse tensors the object's own body is a *meta* tensor without memory, and every op goes through the table of `_rules`:
see `docs/decisions/quantized.md`.
"""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from .. import _C
from .._C import Tensor, ops
from ..overrides import handle_torch_function, has_torch_function
from ..sparse._grads import Opaque
from ..sparse._protocols import others_decide
from . import _printing
from ._protocols import Protocols
from ._quantizer import PER_BYTE, PerChannel, PerTensor, packed

_REPORT = "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"


def made(integers, quantizer, dtype):
    """A quantised tensor of integers and a quantiser that belong together, which are not copied."""
    body = ops["empty"](tuple(integers.shape), dtype=integers.dtype, device="meta")
    self = _C._as_subclass(body, QuantizedTensor)
    self._value, self._quantizer, self._dtype = integers, quantizer, dtype
    return self


def with_value(self, integers):
    """A quantised tensor with the quantiser of another one and other integers."""
    return made(integers, self._quantizer, self._dtype)


def is_quantized(value):
    """Whether an object is a quantised tensor."""
    return isinstance(value, QuantizedTensor)


def refuse(name) -> NoReturn:
    """The error for an op that has no rule."""
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend: {name} is not implemented for quantised "
        "tensors. Hint: call .dequantize(), or see torch.ops.quantized."
    )


def shown(function):
    """A decorator: modes, and objects that override functions, see a call before it runs; quantised tensors do not ask for a rule."""

    @functools.wraps(function)
    def public(*args, **kwargs):
        if _C._overridden(args, kwargs):
            others = [a for a in (*args, *kwargs.values()) if not isinstance(a, QuantizedTensor)]
            if has_torch_function(others):
                return handle_torch_function(public, others, *args, **kwargs)
        return function(*args, **kwargs)

    return public


class QuantizedTensor(Protocols, Opaque, Tensor):
    """A tensor of integers that stand for numbers. Objects are made by `quantize_per_tensor` and its kin, never by the class."""

    _value: Tensor
    _quantizer: PerTensor | PerChannel
    _dtype: _C.dtype

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{cls.__name__}: no constructor; expected a call of quantize_per_tensor or its kin")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._rules import call

        return NotImplemented if others_decide(types, QuantizedTensor) else call(func, args, kwargs or {})

    is_quantized = property(lambda self: True, doc="True.")
    dtype = property(lambda self: self._dtype, doc="`quint8`, `qint8` or `qint32`.")
    T = property(lambda self: self.permute(*reversed(range(self.dim()))), doc="The dimensions in reversed order.")
    mT = property(lambda self: self.transpose(-2, -1), doc="The last two dimensions exchanged.")
    H = property(lambda self: self.t(), doc="A matrix transposed.")
    mH = property(lambda self: self.mT, doc="The last two dimensions exchanged.")
    real = property(lambda self: self, doc="The tensor itself: there are no complex ones.")

    @shown
    def dequantize(self) -> Tensor:
        """The float32 numbers: `(integer - zero_point) * scale`."""
        return self._quantizer.dequantize(self._value)

    def int_repr(self) -> Tensor:
        """A copy of the integers: uint8, int8 or int32; of fewer than eight bits as bytes that hold several."""
        return packed(self._value, self.dtype) if self.dtype in PER_BYTE else self._value.clone()

    def qscheme(self) -> Any:
        """`per_tensor_affine`, `per_channel_affine` or `per_channel_affine_float_qparams`."""
        return self._quantizer.scheme

    def q_scale(self) -> float:
        """The scale. RuntimeError: each channel has its own."""
        return self._per_tensor().scale

    def q_zero_point(self) -> int:
        """The integer that stands for zero. RuntimeError: each channel has its own."""
        return self._per_tensor().zero_point

    def _per_tensor(self):
        if not isinstance(self._quantizer, PerTensor):
            raise RuntimeError(
                f"Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.  {_REPORT}"
            )
        return self._quantizer

    def _per_channel(self):
        if not isinstance(self._quantizer, PerChannel):
            raise RuntimeError(
                "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams to "
                f"be true, but got false.  {_REPORT}"
            )
        return self._quantizer

    def q_per_channel_scales(self) -> Tensor:
        """The scales of the channels: float64, float32 where zero points are floats. RuntimeError: there is one for all."""
        return self._per_channel().scales

    def q_per_channel_zero_points(self) -> Tensor:
        """The zero points of the channels: int64 or float32. RuntimeError: there is one for all."""
        return self._per_channel().zero_points

    def q_per_channel_axis(self) -> int:
        """The dimension of the channels. RuntimeError: there is one scale for all."""
        return self._per_channel().axis

    def detach(self) -> Any:
        """The same integers: a quantised tensor has no history."""
        return with_value(self, self._value.detach())

    def detach_(self) -> Any:
        """The tensor itself."""
        return self

    def _data(self):
        return self.detach()

    def _set_data(self, other):
        if not is_quantized(other):
            raise RuntimeError("data: expected a quantised tensor")
        self._set(other)

    data = property(_data, _set_data, doc="The same integers; assigning gives the tensor those of another.")

    def _set(self, other):
        """Takes the parts of another quantised tensor, in place."""
        if self.shape != other.shape or self._value.dtype != other._value.dtype:
            body = ops["empty"](tuple(other.shape), dtype=other._value.dtype, device="meta")
            Tensor.data.__set__(self, body)
        self._value, self._quantizer, self._dtype = other._value, other._quantizer, other._dtype

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _printing.text(self)
