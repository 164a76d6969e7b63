"""`ops.quantized`: arithmetic, activations, norms and joins, each with the scale and zero point of its result."""

from __future__ import annotations

from typing import Any

from .._C import Tensor, ops
from ..nn import functional
from . import _elementwise, _moves
from ._quantizer import PerTensor, f32, stored, to_integers
from ._tensor import is_quantized, made, refuse

OPS: dict[str, Any] = {}


def op(function):
    """Puts a function among the ops of the namespace, under its own name."""
    OPS[function.__name__] = function
    return function


def quantised(numbers, scale, zero_point, dtype):
    """Float32 numbers with a scale and a zero point."""
    quantizer = PerTensor(float(scale), int(zero_point))
    return made(quantizer.quantize(numbers, dtype), quantizer, dtype)


def _pair(name, qa, qb):
    for q in (qa, qb):
        if not is_quantized(q):
            raise RuntimeError(
                f"quantized::{name}: expected quantised tensors, got one of {getattr(q, 'dtype', type(q).__name__)}"
            )
        if q.qscheme() is not qa.qscheme():
            raise RuntimeError("Both inputs to Add must have the same quantization scheme.")
        q._per_tensor()
    if qa.dtype is not qb.dtype:
        raise RuntimeError(f"{name.capitalize()} operands should have same data type.")


def _low(q, relu):
    if relu:
        q._value.clamp_(min=q.q_zero_point())
    return q


# --- sums and products ---------------------------------------------------------------------------------------------
def _sum(qa, qb, scale, zero_point, relu=False):
    if not isinstance(qb, Tensor):
        return _add_number(qa, float(qb), relu)
    _pair("add", qa, qb)
    a, b = _elementwise.fused(qa), _elementwise.fused(qb)
    total = a.add_(b) if a.shape == b.shape else a + b
    return _low(quantised(total, scale, zero_point, qa.dtype), relu)


def _add_number(qa, number, relu=False):
    """The sum with a number: the zero point moves, and the scale grows where the integers would not suffice."""
    scale, zero = qa._per_tensor()[:2]
    _, least, greatest = stored(qa.dtype)
    moved = zero - round(number / scale)
    if least <= moved <= greatest:
        result = made(qa._value.clone(), PerTensor(scale, moved), qa.dtype)
    else:
        end, reach = (least, greatest - moved) if moved < least else (greatest, moved - least)
        wider = reach / (greatest - least) * scale
        integers = qa._value.double().add_(round(number / scale) - zero).float()
        result = made(to_integers(integers, qa.dtype, f32(scale / wider), end), PerTensor(wider, end), qa.dtype)
    return _low(result, relu)


def _product(qa, qb, scale, zero_point, relu=False):
    if not isinstance(qb, Tensor):
        return _times_number(qa, float(qb), relu)
    _pair("mul", qa, qb)
    a, b = (q._value.float().sub_(q.q_zero_point()) for q in (qa, qb))
    factor = f32(f32(f32(qa.q_scale()) * f32(qb.q_scale())) * f32(1.0 / f32(scale)))
    result = made(
        to_integers(a * b, qa.dtype, factor, int(zero_point)), PerTensor(float(scale), int(zero_point)), qa.dtype
    )
    return _low(result, relu)


def _times_number(qa, number, relu=False):
    """The product with a number: the scale changes, and the integers are mirrored where it is negative."""
    scale, zero = qa._per_tensor()[:2]
    _, least, greatest = stored(qa.dtype)
    if number == 0:
        result = made(ops["zeros_like"](qa._value), PerTensor(1.0, 0), qa.dtype)
    elif number > 0:
        result = made(qa._value.clone(), PerTensor(number * scale, zero), qa.dtype)
    else:
        mirrored = (least + greatest - qa._value.long()).to(qa._value.dtype)
        result = made(mirrored, PerTensor(-number * scale, greatest - (zero - least)), qa.dtype)
    return _low(result, relu)


def _binary(compute, relu):
    def function(qa: Tensor, qb: Any, scale: Any = None, zero_point: Any = None, *, out: Any = None) -> Tensor:
        if not is_quantized(qa):
            qa, qb = qb, qa
        if out is None and is_quantized(scale):  # the form with a result as the third argument
            out, scale = scale, None
        if isinstance(qb, Tensor) and qb.dim() == 0 and not is_quantized(qb):
            qb = qb.item()
        if out is not None:
            if not isinstance(qb, Tensor):
                return out.copy_(compute(qa, qb, None, None, relu))
            result = compute(qa, qb, out.q_scale(), out.q_zero_point(), relu)
            out._value.copy_(result._value)
            return out
        return compute(qa, qb, scale, zero_point, relu)

    return function


for _name, _compute in (("add", _sum), ("mul", _product)):
    for _scalar in ("", "_scalar"):
        for _suffix in ("", "_out"):
            OPS[f"{_name}{_scalar}{_suffix}"] = _binary(_compute, False)
            OPS[f"{_name}{_scalar}_relu{_suffix}"] = _binary(_compute, True)


# --- joins ---------------------------------------------------------------------------------------------------------
def _cat(qx, dim, scale, zero_point, relu):
    first = qx[0]
    scale = first.q_scale() if scale is None else scale
    zero_point = first.q_zero_point() if zero_point is None else zero_point
    return _low(_moves.joined(ops["cat"], list(qx), (dim,), {}, PerTensor(float(scale), int(zero_point))), relu)


@op
def cat(qx, dim, scale=None, zero_point=None):
    """Tensors joined along a dimension, with a scale and a zero point; by default those of the first."""
    return _cat(qx, dim, scale, zero_point, False)


@op
def cat_out(qx, dim, out):
    """Tensors joined along a dimension, written to `out` with its parameters."""
    result = _cat(qx, dim, out.q_scale(), out.q_zero_point(), False)
    out._value.copy_(result._value)
    return out


@op
def cat_relu_out(qx, dim, out):
    """`relu` of `cat`, written to `out`."""
    result = _cat(qx, dim, out.q_scale(), out.q_zero_point(), True)
    out._value.copy_(result._value)
    return out


@op
def cat_relu(qx, dim, scale=None, zero_point=None):
    """`relu` of `cat`."""
    return _cat(qx, dim, scale, zero_point, True)


# --- activations ---------------------------------------------------------------------------------------------------
@op
def relu6(qx, inplace=False):
    """`clamp(0, 6)`."""
    return _elementwise.relu6(qx, inplace)


@op
def clamp(qx, min=None, max=None):
    """The integers between those of the bounds."""
    return _elementwise.clamp(qx, min, max)


@op
def threshold(qx, threshold, value):
    """Of the numbers, with the parameters of the input."""
    return _elementwise.threshold(qx, threshold, value)


@op
def hardswish(input, output_scale, output_zero_point):
    """`x * relu6(x + 3) / 6`."""
    return quantised(functional.hardswish(input.dequantize()), output_scale, output_zero_point, input.dtype)


@op
def elu(self, output_scale, output_zero_point, alpha=1, scale=1, input_scale=1):
    """`scale * (x if x > 0 else alpha * (exp(input_scale * x) - 1))`."""
    x = self.dequantize()
    y = ops["where"](x >= 0, x * scale, ops["expm1"](x * input_scale) * (alpha * scale))
    return quantised(y, output_scale, output_zero_point, self.dtype)


@op
def celu(self, output_scale, output_zero_point, alpha=1):
    """`x if x > 0 else alpha * (exp(x / alpha) - 1)`."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, output_scale, output_zero_point, alpha, 1.0, 1.0 / alpha)


@op
def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """`x if x > 0 else negative_slope * x`."""
    y = functional.leaky_relu(_elementwise.fused(qx), negative_slope)
    result = quantised(y, output_scale, output_zero_point, qx.dtype)
    return qx.copy_(result) if inplace else result


@op
def sigmoid(qx, output_scale, output_zero_point):
    """`1 / (1 + exp(-x))`."""
    return quantised(ops["sigmoid"](qx.dequantize()), output_scale, output_zero_point, qx.dtype)


@op
def softmax(qx, dim, output_scale, output_zero_point):
    """`exp(x)` over its sum along a dimension."""
    return quantised(ops["softmax"](qx.dequantize(), dim), output_scale, output_zero_point, qx.dtype)


@op
def prelu(qx, weight, output_scale, output_zero_point):
    """`x if x > 0 else weight * x`, with a quantised weight."""
    y = functional.prelu(qx.dequantize(), weight.dequantize() if is_quantized(weight) else weight)
    return quantised(y, output_scale, output_zero_point, qx.dtype)


@op
def dropout(self, output_scale, output_zero_point, p=0.5, training=False):
    """The input itself: elements are dropped in training only, where the op refuses."""
    if training:
        refuse("dropout in training")
    return self


@op
def max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode):
    """The greatest element of each window."""
    return functional.max_pool1d(qx, kernel_size, stride or None, padding, dilation, ceil_mode)


@op
def max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode):
    """The greatest element of each window."""
    return functional.max_pool2d(qx, kernel_size, stride or None, padding, dilation, ceil_mode)


# --- norms ---------------------------------------------------------------------------------------------------------
def _batch_norm(qx, weight, bias, mean, var, eps, scale, zero_point, relu=False):
    """An affine function of the integers of each channel, in float32."""
    channels = qx.shape[1]
    weight = ops["ones"](channels) if weight is None else weight.detach()
    bias = ops["zeros"](channels) if bias is None else bias.detach()
    scaled = weight / (var.detach() + eps).sqrt()
    shape = [1, -1] + [1] * (qx.dim() - 2)
    alpha = (scaled * f32(f32(qx.q_scale()) / f32(scale))).reshape(shape)
    beta = ((bias - mean.detach() * scaled) / f32(scale)).reshape(shape)
    x = qx._value.float().sub_(qx.q_zero_point())
    result = to_integers(x * alpha + beta, qx.dtype, 1.0, int(zero_point))
    return _low(made(result, PerTensor(float(scale), int(zero_point)), qx.dtype), relu)


def _add_norm(name, dims, relu):
    def function(
        qx: Tensor,
        weight: Any,
        bias: Any,
        mean: Tensor,
        var: Tensor,
        eps: float,
        output_scale: float,
        output_zero_point: int,
    ) -> Tensor:
        if dims is not None and qx.dim() not in dims:
            raise RuntimeError(f"quantized::{name}: expected an input of {dims[0]} dimensions, got {qx.dim()}")
        return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, relu)

    OPS[name] = function


for _name, _dims in (("batch_norm", None), ("batch_norm1d", (2, 3)), ("batch_norm2d", (4,)), ("batch_norm3d", (5,))):
    _add_norm(_name, _dims, False)
    _add_norm(f"{_name}_relu", _dims, True)


@op
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    """`nn.functional.layer_norm` of the numbers."""
    y = functional.layer_norm(input.dequantize(), list(normalized_shape), weight, bias, eps)
    return quantised(y.detach(), output_scale, output_zero_point, input.dtype)


@op
def group_norm(qx, num_groups, weight, bias, eps, output_scale, output_zero_point):
    """`nn.functional.group_norm` of the numbers."""
    y = functional.group_norm(qx.dequantize(), num_groups, weight, bias, eps)
    return quantised(y.detach(), output_scale, output_zero_point, qx.dtype)


@op
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    """Each channel of each example normalised, of the numbers."""
    y = functional.group_norm(input.dequantize(), input.shape[1], weight, bias, eps)
    return quantised(y.detach(), output_scale, output_zero_point, input.dtype)
