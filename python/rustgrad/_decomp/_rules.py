"""The decompositions. Each has the op's arguments and calls other ops; halves are computed in float32."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._ops import ops
from ..utils import _pytree

__all__ = ["in_core", "table"]

aten = ops.aten
table: dict[Any, Callable[..., Any]] = {}
# Ops of the core that have a decomposition all the same.
in_core = {aten.native_layer_norm.default}
_HALVES = (_C.float16, _C.bfloat16)


def _rule(*overloads: Any, wide: bool = True) -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        made = _in_float(function) if wide else function
        for overload in overloads:
            table[overload] = made
        return function

    return add


def _in_float(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes halves in float32, and rounds its results."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        halves = [t.dtype for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.dtype in _HALVES]
        if not halves:
            return function(*args, **kwargs)
        args, kwargs = _pytree.tree_map(
            lambda t: aten._to_copy.default(t, dtype=_C.float32) if isinstance(t, Tensor) and t.dtype in _HALVES else t,
            (args, kwargs),
        )
        back = lambda t: (
            aten._to_copy.default(t, dtype=halves[0]) if isinstance(t, Tensor) and t.dtype == _C.float32 else t
        )  # noqa: E731
        return _pytree.tree_map(back, function(*args, **kwargs))

    return run


def _zero(t: Tensor) -> Any:
    return aten.scalar_tensor.default(0, dtype=t.dtype, layout=t.layout, device=t.device)


def _reduced(t: Any, reduction: int) -> Any:
    return t if reduction == 0 else aten.mean.default(t) if reduction == 1 else aten.sum.default(t)


# --- activations


@_rule(aten.silu.default)
def _silu(self: Any) -> Any:
    return self * self.sigmoid()


@_rule(aten.silu_backward.default)
def _silu_backward(grad_output: Any, self: Any) -> Any:
    chance = self.sigmoid()
    return grad_output * chance * (self * (1 - chance) + 1)


@_rule(aten.gelu_backward.default)
def _gelu_backward(grad_output: Any, self: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        beta, kappa = math.sqrt(2 / math.pi), 0.044715
        tanh = (beta * (self + kappa * (self * self * self))).tanh()
        left = 0.5 * (1 + tanh)
        inner = beta * (1 + 3 * kappa * (self * self))
        return grad_output * (left + 0.5 * self * (1 - tanh * tanh) * inner)
    chance = ((self * (1 / math.sqrt(2))).erf() + 1) * 0.5
    density = (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return grad_output * (chance + self * density)


@_rule(aten.tanh_backward.default)
def _tanh_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * (1 - output * output)


@_rule(aten.sigmoid_backward.default)
def _sigmoid_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * (output * (1 - output))


@_rule(aten.threshold_backward.default)
def _threshold_backward(grad_output: Any, self: Any, threshold: Any) -> Any:
    return aten.where.self(self <= threshold, _zero(grad_output), grad_output)


@_rule(aten.leaky_relu_backward.default)
def _leaky_relu_backward(grad_output: Any, self: Any, negative_slope: float, self_is_result: bool) -> Any:
    return aten.where.self(self > 0, grad_output, grad_output * negative_slope)


@_rule(aten.hardtanh_backward.default)
def _hardtanh_backward(grad_output: Any, self: Any, min_val: Any, max_val: Any) -> Any:
    return aten.where.self((self <= min_val) | (self >= max_val), _zero(grad_output), grad_output)


@_rule(aten.hardsigmoid.default)
def _hardsigmoid(self: Any) -> Any:
    return aten.clamp.default(aten.clamp.default(self + 3, 0), None, 6) / 6


@_rule(aten.hardsigmoid_backward.default)
def _hardsigmoid_backward(grad_output: Any, self: Any) -> Any:
    return aten.where.self((self > -3.0) & (self < 3.0), grad_output * (1.0 / 6.0), _zero(grad_output))


@_rule(aten.hardswish.default)
def _hardswish(self: Any) -> Any:
    return self * aten.clamp.default(aten.clamp.default(self + 3, 0), None, 6) / 6


@_rule(aten.hardswish_backward.default)
def _hardswish_backward(grad_output: Any, self: Any) -> Any:
    low, high = self <= -3, self < 3
    middle = aten.where.self(high, grad_output * (self / 3 + 0.5), grad_output)
    return aten.where.self(low, _zero(grad_output), middle)


@_rule(aten.softplus.default)
def _softplus(self: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = self if beta == 1 else self * beta
    grown = scaled.exp().log1p()
    return aten.where.self(scaled > threshold, self, grown if beta == 1 else grown / beta)


@_rule(aten.softplus_backward.default)
def _softplus_backward(grad_output: Any, self: Any, beta: Any, threshold: Any) -> Any:
    scaled = self * beta
    grown = scaled.exp()
    return aten.where.self(scaled > threshold, grad_output, grad_output * grown / (grown + 1.0))


@_rule(aten.mish.default)
def _mish(self: Any) -> Any:
    return self * aten.softplus.default(self).tanh()


# --- normalisations


@_rule(aten._softmax_backward_data.default, wide=False)
def _softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    grown = grad_output * output
    made = grown - output * aten.sum.dim_IntList(grown, [dim], True)
    return made if made.dtype == input_dtype else aten._to_copy.default(made, dtype=input_dtype)


@_rule(aten._log_softmax_backward_data.default, wide=False)
def _log_softmax_backward(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    made = grad_output - output.exp() * aten.sum.dim_IntList(grad_output, [dim], True)
    return made if made.dtype == input_dtype else aten._to_copy.default(made, dtype=input_dtype)


@_rule(aten.native_layer_norm.default)
def _native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    var, mean = aten.var_mean.correction(input, dims, correction=0, keepdim=True)
    scale = (var + eps).rsqrt()
    made = (input - mean) * scale
    made = made if weight is None else made * weight
    return made if bias is None else made + bias, mean, scale


@_rule(aten.native_layer_norm_backward.default)
def _native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any
) -> Any:
    outer = input.dim() - len(normalized_shape)
    inner, rows = list(range(outer, input.dim())), list(range(outer))
    count = math.prod(normalized_shape)
    unit = (input - mean) * rstd
    grad = grad_out if weight is None else grad_out * weight
    found: list[Any] = [None, None, None]
    if output_mask[0]:
        total = aten.sum.dim_IntList(grad, inner, True)
        along = unit * aten.sum.dim_IntList(grad * unit, inner, True)
        found[0] = rstd / count * (grad * count - total - along)
    if output_mask[1] and weight is not None:
        found[1] = aten.sum.dim_IntList(grad_out * unit, rows) if rows else grad_out * unit
    if output_mask[2] and bias is not None:
        found[2] = aten.sum.dim_IntList(grad_out, rows) if rows else grad_out.clone()
    return tuple(found)


# --- losses


@_rule(aten.mse_loss.default)
def _mse_loss(self: Any, target: Any, reduction: int = 1) -> Any:
    return _reduced((self - target) ** 2, reduction)


@_rule(aten.mse_loss_backward.default)
def _mse_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    return (2.0 / self.numel() if reduction == 1 else 2.0) * (self - target) * grad_output


@_rule(aten.smooth_l1_loss.default)
def _smooth_l1_loss(self: Any, target: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    size = (self - target).abs()
    return _reduced(aten.where.self(size < beta, size**2 * 0.5 / beta, size - 0.5 * beta), reduction)


@_rule(aten.binary_cross_entropy_with_logits.default)
def _bce_with_logits(self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1) -> Any:
    if pos_weight is None:
        loss = (1 - target) * self - aten.log_sigmoid_forward.default(self)[0]
    else:
        loss = (1 - target) * self - ((pos_weight - 1) * target + 1) * aten.log_sigmoid_forward.default(self)[0]
    return _reduced(loss if weight is None else loss * weight, reduction)


# --- forms and small ops


@_rule(aten.t.default, wide=False)
def _t(self: Any) -> Any:
    return aten.permute.default(self, [1, 0]) if self.dim() == 2 else aten.alias.default(self)


@_rule(aten.transpose.int, wide=False)
def _transpose(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


@_rule(aten.split.Tensor, wide=False)
def _split(self: Any, split_size: int, dim: int = 0) -> Any:
    n = self.shape[dim]
    if split_size == 0:
        return NotImplemented
    return aten.split_with_sizes.default(self, [min(split_size, n - i) for i in range(0, n, split_size)] or [0], dim)


@_rule(aten.stack.default, wide=False)
def _stack(tensors: Any, dim: int = 0) -> Any:
    shape = list(tensors[0].shape)
    at = dim % (len(shape) + 1)
    if at == len(shape):
        return aten.cat.default([aten.unsqueeze.default(t, at) for t in tensors], at)
    return aten.view.default(aten.cat.default(list(tensors), at), [*shape[:at], len(tensors), *shape[at:]])


@_rule(aten.sum.default, wide=False)
def _sum(self: Any, *, dtype: Any = None) -> Any:
    return aten.sum.dim_IntList(self, [], dtype=dtype)


def _filling(name: str, value: float) -> None:
    def like(self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, memory_format: Any = None) -> Any:  # fmt: skip
        given = {"dtype": dtype, "layout": layout, "device": device, "memory_format": memory_format}
        return aten.full_like.default(
            self, value, pin_memory=False, **{k: v for k, v in given.items() if v is not None}
        )

    def new(size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Any:
        given = {"dtype": dtype, "layout": layout, "device": device}
        number = float(value) if dtype is None or dtype.is_floating_point or dtype.is_complex else int(value)
        return aten.full.default(size, number, pin_memory=False, **{k: v for k, v in given.items() if v is not None})

    table[getattr(aten, f"{name}_like").default], table[getattr(aten, name).default] = like, new


_filling("zeros", 0)
_filling("ones", 1)


@_rule(aten.rsub.Scalar, aten.rsub.Tensor, wide=False)
def _rsub(self: Any, other: Any, alpha: Any = 1) -> Any:
    scaled = self if alpha == 1 else self * alpha
    return aten.sub.Tensor(other, scaled)


@_rule(aten.addcmul.default)
def _addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    made = tensor1 * tensor2
    return self + (made if value == 1 else made * value)


@_rule(aten.addcdiv.default)
def _addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    made = tensor1 / tensor2
    return self + (made if value == 1 else made * value)


@_rule(aten.masked_fill.Scalar, wide=False)
def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    made = aten.scalar_tensor.default(value, dtype=self.dtype, layout=self.layout, device=self.device)
    return aten.where.self(mask, made, self)


@_rule(aten.mv.default, wide=False)
def _mv(self: Any, vec: Any) -> Any:
    return aten.sum.dim_IntList(self * vec, [1])


@_rule(aten.dot.default, wide=False)
def _dot(self: Any, tensor: Any) -> Any:
    return aten.sum.dim_IntList(self * tensor, [0])


@_rule(aten.std.correction)
def _std(self: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return aten.var.correction(self, dim, correction=correction, keepdim=keepdim).sqrt()


@_rule(aten.slice_backward.default, wide=False)
def _slice_backward(grad_output: Any, input_sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    zeros = aten.full.default(list(input_sizes), 0, dtype=grad_output.dtype, device=grad_output.device)
    return aten.slice_scatter.default(zeros, grad_output, dim, start, end, step)


@_rule(aten.select_backward.default, wide=False)
def _select_backward(grad_output: Any, input_sizes: Any, dim: int, index: int) -> Any:
    zeros = aten.full.default(list(input_sizes), 0, dtype=grad_output.dtype, device=grad_output.device)
    return aten.select_scatter.default(zeros, grad_output, dim, index)
