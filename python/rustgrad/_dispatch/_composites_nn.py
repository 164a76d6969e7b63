"""Layers and losses as the ops that they consist of."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._formats import strided
from .._ops import ops
from ._composites import converted, part_of, reshaped, run

__all__: list[str] = []

aten = ops.aten


# --- products


def _rows(self: Tensor) -> int:
    size = 1
    for n in self.shape[:-1]:
        size *= n
    return size


@part_of(aten.linear.default)
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if weight.dim() != 2:
        return NotImplemented
    if bias is None:
        return _matmul(input, run(aten.t.default, weight))
    if input.dim() == 2:
        return run(aten.addmm.default, bias, input, run(aten.t.default, weight))
    if input.dim() == 0:
        return NotImplemented
    flat = reshaped(input, [_rows(input), input.shape[-1]])
    result = run(aten.addmm.default, bias, flat, run(aten.t.default, weight))
    return run(aten._unsafe_view.default, result, [*input.shape[:-1], weight.shape[0]])


@part_of(aten.matmul.default)
def _matmul(self: Any, other: Any) -> Any:
    a, b = self.dim(), other.dim()
    if a == 0 or b == 0:
        return NotImplemented
    if a == 1 and b == 1:
        return run(aten.dot.default, self, other)
    if a == 2 and b == 1:
        return run(aten.mv.default, self, other)
    if a == 1 and b == 2:
        return run(aten.squeeze_.dim, run(aten.mm.default, run(aten.unsqueeze.default, self, 0), other), 0)
    if a == 2 and b == 2:
        return run(aten.mm.default, self, other)
    if b <= 2 and (self.is_contiguous() or self.requires_grad):
        flat = reshaped(self, [_rows(self), self.shape[-1]])
        if b == 1:
            return run(aten._unsafe_view.default, run(aten.mv.default, flat, other), list(self.shape[:-1]))
        return run(aten._unsafe_view.default, run(aten.mm.default, flat, other), [*self.shape[:-1], other.shape[-1]])
    return _batched(self, other)


def _batched(self: Tensor, other: Tensor) -> Tensor:
    """A product of batches of matrices, or of one with vectors."""
    left = run(aten.unsqueeze.default, self, 0) if self.dim() == 1 else self
    right = run(aten.unsqueeze.default, other, 1) if other.dim() == 1 else other
    rank = max(left.dim(), right.dim())
    ones, twos = ([1] * (rank - t.dim()) + list(t.shape) for t in (left, right))
    batch = [m if n == 1 else n for n, m in zip(ones[:-2], twos[:-2])]
    count = math.prod(batch)
    one = reshaped(run(aten.expand.default, left, [*batch, *ones[-2:]]), [count, *ones[-2:]])
    two = reshaped(run(aten.expand.default, right, [*batch, *twos[-2:]]), [count, *twos[-2:]])
    shape = [*batch, *([] if self.dim() == 1 else [ones[-2]]), *([] if other.dim() == 1 else [twos[-1]])]
    return run(aten._unsafe_view.default, run(aten.bmm.default, one, two), shape)


def _many(value: Any, count: int) -> list[int]:
    values = [value] * count if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _convolution(dims: int) -> None:
    def call(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        return _convolved(dims, input, weight, bias, stride, padding, dilation, False, 0, groups)

    def turned(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:  # fmt: skip
        return _convolved(dims, input, weight, bias, stride, padding, dilation, True, output_padding, groups)

    packet = getattr(aten, f"conv{dims}d")
    part_of(packet.default, packet.padding)(call)
    part_of(getattr(getattr(aten, f"conv_transpose{dims}d"), "default" if dims == 1 else "input"))(turned)


def _convolved(dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, turned: bool, more: Any, groups: int) -> Any:  # fmt: skip
    stride, dilation = _many(stride, dims), _many(dilation, dims)
    if isinstance(padding, str):
        if padding == "valid":
            padding = [0] * dims
        else:
            both = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
            if any(n % 2 for n in both):
                return NotImplemented
            padding = [n // 2 for n in both]
    padding = _many(padding, dims)
    single = input.dim() == dims + 1
    x = run(aten.unsqueeze.default, input, 0) if single else input
    rest = (stride, padding, dilation, turned, _many(more, dims), groups)
    result = run(aten.convolution.default, x, weight, bias, *rest)
    return run(aten.squeeze.dim, result, 0) if single else result


for _dims in (1, 2, 3):
    _convolution(_dims)


# --- norms


@part_of(aten.layer_norm.default)
def _layer_norm(input: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, enable: bool = True) -> Any:  # fmt: skip
    return run(aten.native_layer_norm.default, input, list(shape), weight, bias, eps)[0]


@part_of(aten.group_norm.default)
def _group_norm(input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, enable: bool = True) -> Any:  # fmt: skip
    n, c, *rest = input.shape
    if c % groups:
        return NotImplemented
    x = run(aten.contiguous.default, input)
    return run(aten.native_group_norm.default, x, weight, bias, n, c, math.prod(rest), groups, eps)[0]


@part_of(aten.batch_norm.default)
def _batch_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, enable: bool) -> Any:  # fmt: skip
    # Where PyTorch keeps what its library for GPUs returns.
    run(aten.empty.memory_format, [0], dtype=_C.uint8, layout=strided, device=input.device)
    return run(aten.native_batch_norm.default, input, weight, bias, mean, var, training, momentum, eps)[0]


@part_of(aten.instance_norm.default)
def _instance_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool, momentum: float, eps: float, enable: bool) -> Any:  # fmt: skip
    if mean is not None or not use_input_stats:
        return NotImplemented
    n, c, *rest = input.shape
    given = [None if t is None else run(aten.repeat.default, t, [n]) for t in (weight, bias)]
    x = run(aten.view.default, run(aten.contiguous.default, input), [1, n * c, *rest])
    result = _batch_norm(x, *given, None, None, True, momentum, eps, False)
    return run(aten.view.default, result, list(input.shape))


# --- activations


@part_of(aten.softmax.int)
def _softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    return run(aten._softmax.default, converted(self, dtype=dtype), dim, False)


@part_of(aten.log_softmax.int)
def _log_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    return run(aten._log_softmax.default, converted(self, dtype=dtype), dim, False)


@part_of(aten.relu6.default)
def _relu6(self: Any) -> Any:
    return run(aten.hardtanh.default, self, 0, 6)


@part_of(aten.relu6_.default)
def _relu6_(self: Any) -> Any:
    return run(aten.hardtanh_.default, self, 0, 6)


@part_of(aten.log_sigmoid.default)
def _log_sigmoid(self: Any) -> Any:
    return run(aten.log_sigmoid_forward.default, self)[0]


@part_of(aten.dropout.default)
def _dropout(input: Any, p: float, train: bool) -> Any:
    if not train or p == 0 or input.numel() == 0:
        return input
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 1:
        return run(aten.mul.Tensor, input, run(aten.zeros.default, [], dtype=input.dtype, device=input.device))
    noise = run(aten.bernoulli_.float, run(aten.empty_like.default, input), 1 - p)
    return run(aten.mul.Tensor, input, run(aten.div_.Scalar, noise, 1 - p))


@part_of(aten.feature_dropout.default)
def _feature_dropout(input: Any, p: float, train: bool) -> Any:
    if not train or p == 0 or input.numel() == 0 or not 0 <= p < 1:
        return _dropout(input, p, train)
    shape = [*input.shape[:2], *(1 for _ in input.shape[2:])]
    noise = run(aten.bernoulli_.float, run(aten.new_empty.default, input, shape), 1 - p)
    return run(aten.mul.Tensor, input, run(aten.div_.Scalar, noise, 1 - p))


# --- pooling and pictures


@part_of(aten.max_pool2d.default)
def _max_pool2d(self: Any, *args: Any) -> Any:
    return run(aten.max_pool2d_with_indices.default, self, *args)[0]


@part_of(aten.max_pool3d.default)
def _max_pool3d(self: Any, *args: Any) -> Any:
    return run(aten.max_pool3d_with_indices.default, self, *args)[0]


@part_of(aten.max_pool1d_with_indices.default)
def _max_pool1d_with_indices(self: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Any:  # fmt: skip
    sizes = [[1, *_many(v, 1)] if v != () and v != [] else [] for v in (kernel, stride)]
    rest = [] if (padding, dilation, ceil) in ((0, 1, False), ([0], [1], False)) else [[0, *_many(padding, 1)], [1, *_many(dilation, 1)], ceil]  # fmt: skip
    x = run(aten.unsqueeze.default, self, -2)
    found = run(aten.max_pool2d_with_indices.default, x, sizes[0], *([sizes[1]] if sizes[1] or rest else []), *rest)
    return tuple(run(aten.squeeze.dim, t, -2) for t in found)


@part_of(aten.max_pool1d.default)
def _max_pool1d(self: Any, *args: Any) -> Any:
    return _max_pool1d_with_indices(self, *args)[0]


@part_of(aten.adaptive_avg_pool2d.default)
def _adaptive_avg_pool2d(self: Any, size: Any) -> Any:
    if list(size) == [1, 1]:
        return run(aten.mean.dim, self, [-1, -2], True)
    return run(aten._adaptive_avg_pool2d.default, self, list(size))


@part_of(aten.adaptive_avg_pool3d.default)
def _adaptive_avg_pool3d(self: Any, size: Any) -> Any:
    if list(size) == [1, 1, 1]:
        return run(aten.mean.dim, self, [-1, -2, -3], True)
    return run(aten._adaptive_avg_pool3d.default, self, list(size))


@part_of(aten.adaptive_avg_pool1d.default)
def _adaptive_avg_pool1d(self: Any, size: Any) -> Any:
    x = run(aten.unsqueeze.default, self, -2)
    return run(aten.squeeze.dim, _adaptive_avg_pool2d(x, [1, *_many(size, 1)]), -2)


@part_of(aten.avg_pool1d.default)
def _avg_pool1d(self: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil: bool = False, count: bool = True) -> Any:  # fmt: skip
    stride = [1, *_many(stride, 1)] if stride not in ((), []) else []
    x = run(aten.unsqueeze.default, self, -2)
    found = run(aten.avg_pool2d.default, x, [1, *_many(kernel, 1)], stride, [0, *_many(padding, 1)], ceil, count)
    return run(aten.squeeze.dim, found, -2)


def _upsample(name: str, dims: int, corners: bool) -> None:
    packet = getattr(aten, name)

    def call(input: Any, size: Any, *rest: Any) -> Any:
        align, factors = (rest[:1], rest[1]) if corners else ((), rest[0])
        if size is None:
            size = [int(n * s) for n, s in zip(input.shape[2:], factors)]
        return run(packet.default, input, list(size), *align, *(factors or ()))

    part_of(packet.vec)(call)


for _name, _count, _corners in (
    ("upsample_nearest1d", 1, False), ("upsample_nearest2d", 2, False), ("upsample_nearest3d", 3, False),
    ("_upsample_nearest_exact1d", 1, False), ("_upsample_nearest_exact2d", 2, False), ("_upsample_nearest_exact3d", 3, False),
    ("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True), ("upsample_trilinear3d", 3, True), ("upsample_bicubic2d", 2, True),
    ("_upsample_bilinear2d_aa", 2, True), ("_upsample_bicubic2d_aa", 2, True),
):  # fmt: skip
    _upsample(_name, _count, _corners)


@part_of(aten.pad.default)
def _pad(self: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        return run(aten.constant_pad_nd.default, self, list(pad), 0.0 if value is None else value)
    dims, kind = len(pad) // 2, {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if kind is None or self.dim() not in (dims + 1, dims + 2):
        return NotImplemented
    return run(getattr(aten, f"{kind}_pad{dims}d").default, self, list(pad))


# --- losses


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss if reduction == 0 else run(aten.mean.default if reduction == 1 else aten.sum.default, loss)


@part_of(aten.nll_loss_nd.default)
def _nll_loss_nd(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    rest = (target, weight, reduction, ignore_index)
    if self.dim() in (1, 2):
        return run(aten.nll_loss_forward.default, self, *rest)[0]
    if self.dim() == 4:
        return run(aten.nll_loss2d_forward.default, self, *rest)[0]
    return NotImplemented


@part_of(aten.cross_entropy_loss.default)
def _cross_entropy_loss(self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0) -> Any:  # fmt: skip
    if label_smoothing or tuple(self.shape) == tuple(target.shape) or self.dim() not in (1, 2, 4):
        return NotImplemented
    x = run(aten._log_softmax.default, self, 0 if self.dim() == 1 else 1, False)
    return _nll_loss_nd(x, target, weight, reduction, ignore_index)


@part_of(aten.l1_loss.default)
def _l1_loss(self: Any, target: Any, reduction: int = 1) -> Any:
    return _reduced(run(aten.abs.default, run(aten.sub.Tensor, self, target)), reduction)


@part_of(aten.kl_div.default)
def _kl_div(self: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    if log_target:
        loss = run(aten.mul.Tensor, run(aten.exp.default, target), run(aten.sub.Tensor, target, self))
    else:
        product = run(aten.mul.Tensor, target, self)
        loss = run(aten.sub.Tensor, run(aten.xlogy.Tensor, target, target), product)
    return _reduced(loss, reduction)


@part_of(aten.scaled_dot_product_attention.default)
def _attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> Any:  # fmt: skip
    plain = attn_mask is None or not attn_mask.requires_grad
    if enable_gqa or not plain or any(t.dim() != 4 for t in (query, key, value)) or query.device.type != "cpu":
        return NotImplemented
    if dropout_p > 0:
        return _attention_by_steps(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if attn_mask is not None and attn_mask.dtype == _C.bool:
        zero = run(aten.scalar_tensor.default, 0.0, dtype=query.dtype, device=query.device)
        low = run(aten.scalar_tensor.default, float("-inf"), dtype=query.dtype, device=query.device)
        attn_mask = run(aten.where.self, attn_mask, zero, low)
    named = {k: v for k, v in (("attn_mask", attn_mask), ("scale", scale)) if v is not None}
    flags = [0.0, True] if is_causal else []
    return run(aten._scaled_dot_product_flash_attention_for_cpu.default, query, key, value, *flags, **named)[0]


def _attention_by_steps(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: Any
) -> Any:
    factor = math.sqrt(query.shape[-1] ** -0.5 if scale is None else scale)
    turned = run(aten.transpose.int, key, -2, -1)
    scores = _matmul(run(aten.mul.Tensor, query, factor), run(aten.mul.Tensor, turned, factor))
    if is_causal:
        mask = run(
            aten.tril.default, run(aten.ones.default, list(scores.shape[-2:]), dtype=_C.bool, device=query.device)
        )
    if mask is not None and mask.dtype == _C.bool:
        hidden = run(aten.logical_not.default, mask)
        scores = run(aten.masked_fill.Scalar, scores, hidden, float("-inf"))
    elif mask is not None:
        scores = run(aten.add.Tensor, scores, mask)
    return _matmul(_dropout(_softmax(scores, -1), dropout_p, True), value)
