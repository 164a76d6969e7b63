"""Fake quantisation: numbers rounded to those that integers stand for, with straight-through gradients.

The gradient passes where the integer is within its bounds. The learnable forms have gradients of the scale and the zero point
too, as in "Learned Step Size Quantization".
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor, ops
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..overrides import overridable
from ._construct import chosen
from ._quantizer import f32

__all__ = [
    "_fake_quantize_learnable_per_channel_affine",
    "_fake_quantize_learnable_per_tensor_affine",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "_fused_moving_avg_obs_fq_helper",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "fused_moving_avg_obs_fake_quant",
]


def _rounded(x, scale, zero_point, low, high):
    """The numbers, and where their integers are within the bounds.

    Args:
        scale (float or Tensor): in float32.
        zero_point (int or Tensor): floats are added before rounding.
    """
    wide = x if x.dtype == _C.float64 else x.float()
    inverse = ops["reciprocal"](scale) if isinstance(scale, Tensor) else f32(1.0 / scale) if scale else float("inf")
    if isinstance(zero_point, Tensor) and zero_point.dtype.is_floating_point:
        integers = (wide * inverse + zero_point).round_() + 0.0  # there is no integer -0.0
    else:
        integers = (wide * inverse).round_() + zero_point
    # A NaN becomes the least integer: `fmax` takes the number beside it.
    integers = ops["fmax"](integers, ops["full"]((), -float("inf"), dtype=integers.dtype, device=integers.device))
    mask = (integers >= low) & (integers <= high)
    integers = integers.clamp_(low, high)
    if not isinstance(scale, Tensor):
        integers = integers.float()  # also where the numbers are of float64, as in PyTorch
    return ((integers - zero_point) * scale).to(x.dtype), mask


class FakeQuantizePerTensorAffineCachemask(Function):
    """One scale and zero point."""

    _node_name = "FakeQuantizePerTensorAffineCachemaskBackward0"

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Any:
        """The rounded numbers and the mask."""
        made, mask = _rounded(x, scale, zero_point, low, high)
        ctx.save_for_backward(mask)
        ctx.mark_non_differentiable(mask)
        return made, mask

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient where the integer was within its bounds."""
        (mask,) = ctx.saved_tensors
        return grads[0] * mask, None, None, None, None


class FakeQuantizePerChannelAffineCachemask(FakeQuantizePerTensorAffineCachemask):
    """A scale and a zero point for each index of a dimension."""

    _node_name = "FakeQuantizePerChannelAffineCachemaskBackward0"


class _Learnable(Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, zero_point: Tensor, axis: Any, low: int, high: int, factor: float
    ) -> Tensor:
        """The rounded numbers, with a zero point that is rounded first."""
        shape = [-1 if i == axis else 1 for i in range(x.dim())]
        wide_scale = scale.detach().float().reshape(shape)
        zero = zero_point.detach().float().round().clamp(low, high).reshape(shape)
        ctx.save_for_backward(x, wide_scale, zero)
        ctx.given = (scale, zero_point, axis, low, high, factor)
        return _rounded(x, wide_scale, zero.to(_C.int32), low, high)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of numbers, scale and zero point."""
        (grad,) = grads
        x, scale, zero = ctx.saved_tensors
        given_scale, given_zero, axis, low, high, factor = ctx.given
        inverse = ops["reciprocal"](scale)
        integers = (x * inverse).round() + zero
        inside = (integers >= low) & (integers <= high)
        clamped = integers.clamp(low, high)
        of_scale = ops["where"](inside, ((clamped - zero) * scale - x) * inverse, clamped - zero) * grad
        of_zero = ops["where"](inside, ops["zeros_like"](grad), -grad * scale)
        others = [d for d in range(x.dim()) if d != axis]

        def reduced(values: Tensor, like: Tensor) -> Tensor:
            total = values.sum(others) if others else values
            return (total * factor).reshape(like.shape).to(like.dtype)

        return grad * inside, reduced(of_scale, given_scale), reduced(of_zero, given_zero), None, None, None, None


class FakeQuantizeLearnablePerTensorAffine(_Learnable):
    """One scale and zero point."""

    _node_name = "FakeQuantizeLearnablePerTensorAffineBackward0"


class FakeQuantizeLearnablePerChannelAffine(_Learnable):
    """A scale and a zero point for each index of a dimension."""

    _node_name = "FakeQuantizeLearnablePerChannelAffineBackward0"


def _check_bounds(low, high):
    if low > high:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")


def _check_input(name, x):
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype._scalar_type_name!r}')


@overridable
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """`(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale`, differentiable.

    Args:
        input (Tensor): floating point.
        scale (float or Tensor): one number.
        zero_point (int or Tensor): one integer; a tensor is of dtype int32 or float32.

    Raises:
        RuntimeError: bounds in the wrong order, or a zero point outside of them.
    """
    return _per_tensor(input, scale, zero_point, quant_min, quant_max)[0]


def _per_tensor(input, scale, zero_point, low, high):
    _check_bounds(low, high)
    _check_input("fake_quantize_tensor_cachemask_kernel_type_handling", input)
    if isinstance(zero_point, Tensor):
        zero_point = zero_point.detach().reshape(()).item()
        if isinstance(zero_point, float):
            zero_point = _C.tensor(zero_point)
    elif not low <= zero_point <= high:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    scale = scale.detach().reshape(()).item() if isinstance(scale, Tensor) else scale
    return FakeQuantizePerTensorAffineCachemask.apply(input, f32(scale), zero_point, low, high)


@overridable
def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    input: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> Any:
    """The numbers and the mask of `fake_quantize_per_tensor_affine`; where it is not enabled the input and a mask of True."""
    if not int(fake_quant_enabled):
        return input.clone(), ops["ones_like"](input, dtype=_C.bool)
    return _per_tensor(input, scale, zero_point, quant_min, quant_max)


@overridable
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of the dimension `axis`.

    Args:
        scale (Tensor): float32 of shape (channels).
        zero_point (Tensor): int32, float32 or float16 of shape (channels).

    Raises:
        RuntimeError: other dtypes or shapes, bounds in the wrong order, or a zero point outside of them.
    """
    return _per_channel(input, scale, zero_point, axis, quant_min, quant_max)[0]


def _per_channel(input, scale, zero_point, axis, low, high):
    if scale.dtype != _C.float32:
        raise RuntimeError(f"Scale must be Float, found {scale.dtype._scalar_type_name}")
    if zero_point.dtype not in (_C.int32, _C.float32, _C.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype._scalar_type_name}")
    if scale.dim() != 1 or zero_point.dim() != 1:
        raise RuntimeError("scale and zero point should be 1-D tensors")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not 0 <= axis < input.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.numel() != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check_bounds(low, high)
    _check_input("fake_quantize_channel_cachemask_cpu_type_handling", input)
    if zero_point.dtype == _C.int32 and zero_point.numel():
        least, greatest = (int(t) for t in ops["aminmax"](zero_point.detach()))
        if least < low or greatest > high:
            raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = [-1 if i == axis else 1 for i in range(input.dim())]
    zero = zero_point.detach().reshape(shape)
    zero = zero.float() if zero.dtype.is_floating_point else zero
    return FakeQuantizePerChannelAffineCachemask.apply(input, scale.detach().float().reshape(shape), zero, low, high)


@overridable
def _fake_quantize_learnable_per_tensor_affine(
    self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with gradients of the scale and the zero point, each a tensor with one element."""
    _check_bounds(quant_min, quant_max)
    return FakeQuantizeLearnablePerTensorAffine.apply(self, scale, zero_point, None, quant_min, quant_max, grad_factor)


@overridable
def _fake_quantize_learnable_per_channel_affine(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """`fake_quantize_per_channel_affine` with gradients of scales and zero points."""
    _check_bounds(quant_min, quant_max)
    if scale.numel() != self.shape[axis] or zero_point.numel() != self.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    return FakeQuantizeLearnablePerChannelAffine.apply(self, scale, zero_point, axis, quant_min, quant_max, grad_factor)


def _observe(x, running_min, running_max, constant, axis, per_row):
    """Moves the running range towards that of a tensor; the first range is taken as it is."""
    if per_row:
        rows = x.movedim(axis, 0).reshape(x.shape[axis], -1)
        low, high = ops["aminmax"](rows, dim=1)
        for running, value in ((running_min, float("inf")), (running_max, -float("inf"))):
            if running.numel() != low.numel():
                running.resize_(low.shape).fill_(value)
    else:
        low, high = ops["aminmax"](x)
    for running, seen in ((running_min, low), (running_max, high)):
        seen = seen.to(running.dtype).reshape(running.shape)
        running.copy_(ops["where"](running.isinf(), seen, running + constant * (seen - running)))


def _choose(running_min, running_max, scale, zero_point, low, high, symmetric):
    """Writes the scales and zero points of running ranges."""
    lows, highs = running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist()
    found = [chosen(a, b, low, high, symmetric) for a, b in zip(lows, highs, strict=True)]
    for parameter, column in ((scale, 0), (zero_point, 1)):
        if parameter.numel() != len(found):
            parameter.resize_(len(found))
        values = _C.tensor([pair[column] for pair in found], dtype=parameter.dtype, device=parameter.device)
        parameter.copy_(values.reshape(parameter.shape))


@overridable
def _fused_moving_avg_obs_fq_helper(
    self: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Any:  # fmt: skip
    """The numbers and the mask of `fused_moving_avg_obs_fake_quant`."""
    if self.numel() == 0:
        return self, ops["ones_like"](self, dtype=_C.bool)
    if ch_axis >= self.dim():
        raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    with no_grad():
        if int(observer_on):
            _observe(self.detach(), running_min, running_max, averaging_const, ch_axis, per_row_fake_quant)
        if not int(fake_quant_on):
            return self, ops["ones_like"](self, dtype=_C.bool)
        _choose(running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant)
    if per_row_fake_quant:
        return _per_channel(self, scale, zero_point, ch_axis, quant_min, quant_max)
    return _per_tensor(self, scale, zero_point, quant_min, quant_max)


@overridable
def fused_moving_avg_obs_fake_quant(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:  # fmt: skip
    """Observes a range by a moving average, takes scale and zero point of it, and rounds: each step if it is switched on.

    Args:
        observer_on, fake_quant_on (Tensor): one element, zero or not.
        running_min, running_max, scale, zero_point (Tensor): written where the observer is on.
        averaging_const (float): the weight of the new range.
        ch_axis (int): the dimension of the channels.
        per_row_fake_quant (bool): each channel has its own range.
        symmetric_quant (bool): a range about zero.
    """
    return _fused_moving_avg_obs_fq_helper(
        input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max,
        ch_axis, per_row_fake_quant, symmetric_quant,
    )[0]  # fmt: skip
