"""Composite ops as ops of the core of ATen: the table of `default_decompositions`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .._base import Tensor
from .._ops import ops

__all__ = ["CustomDecompTable"]

_table: dict[Any, Callable[..., Any]] = {}
aten = ops.aten


class CustomDecompTable(dict[Any, Callable[..., Any]]):
    """{op: function that is called in its place}. A new one has what `default_decompositions` has."""

    def __init__(self) -> None:
        super().__init__(_table)

    def copy(self) -> CustomDecompTable:
        """Another one with the same entries."""
        made = CustomDecompTable()
        made.clear()
        made.update(self)
        return made

    def materialize(self) -> dict[Any, Callable[..., Any]]:
        """The entries as a plain dict."""
        return dict(self)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(list(self))


def instead_of(*overloads: Any) -> Callable[..., Any]:
    """Adds a function that is called in the place of these overloads."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            _table[overload] = function
        return function

    return add


@instead_of(aten.linear.default)
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    turned = aten.permute.default(weight, [1, 0])
    if input.dim() == 1:
        result = aten.mv.default(weight, input)
        return result if bias is None else aten.add.Tensor(result, bias)
    flat = input
    if input.dim() > 2:
        rows: int = 1
        for n in input.shape[:-1]:
            rows = rows * n
        flat = aten.view.default(_dense(input), [rows, input.shape[-1]])
    result = aten.mm.default(flat, turned) if bias is None else aten.addmm.default(bias, flat, turned)
    return result if input.dim() == 2 else aten.view.default(result, [*input.shape[:-1], weight.shape[0]])


def _dense(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else aten.clone.default(x, memory_format=_contiguous())


def _contiguous() -> Any:
    from .._formats import contiguous_format

    return contiguous_format


def _many(value: Any, count: int) -> list[int]:
    values = [value] * count if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _convolution(dims: int) -> None:
    def call(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        given = [_many(v, dims) for v in (stride, padding, dilation)]
        return aten.convolution.default(input, weight, bias, *given, False, [0] * dims, groups)

    def turned(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:  # fmt: skip
        given = [_many(v, dims) for v in (stride, padding, dilation)]
        return aten.convolution.default(input, weight, bias, *given, True, _many(output_padding, dims), groups)

    _table[getattr(aten, f"conv{dims}d").default] = call
    # A case of one example has no form as a convolution.
    overload = "default" if dims == 1 else "input"
    _table[getattr(getattr(aten, f"conv_transpose{dims}d"), overload)] = turned


for _dims in (1, 2, 3):
    _convolution(_dims)


@instead_of(aten.layer_norm.default)
def _layer_norm(input: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, enable: bool = True) -> Any:  # fmt: skip
    return aten.native_layer_norm.default(input, shape, weight, bias, eps)[0]


@instead_of(aten.group_norm.default)
def _group_norm(input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, enable: bool = True) -> Any:  # fmt: skip
    n, c, *rest = input.shape
    size: int = 1
    for s in rest:
        size = size * s
    return aten.native_group_norm.default(_dense(input), weight, bias, n, c, size, groups, eps)[0]


@instead_of(aten.batch_norm.default)
def _batch_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, enable: bool) -> Any:  # fmt: skip
    if training and mean is not None:
        # Its writes are seen where writes are taken out of the graph.
        return NotImplemented
    if training:
        return aten._native_batch_norm_legit.no_stats(input, weight, bias, True, momentum, eps)[0]
    return aten._native_batch_norm_legit_no_training.default(input, weight, bias, mean, var, momentum, eps)[0]


@instead_of(aten.softmax.int)
def _softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    x = self if dtype is None else aten._to_copy.default(self, dtype=dtype)
    return aten._softmax.default(x, dim, False)


@instead_of(aten.log_softmax.int)
def _log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    x = self if dtype is None else aten._to_copy.default(self, dtype=dtype)
    return aten._log_softmax.default(x, dim, False)


@instead_of(aten.dropout.default)
def _dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return aten.native_dropout.default(input, p, True)[0] if train and p > 0 else aten.clone.default(input)


@instead_of(aten.t.default)
def _t(self: Tensor) -> Tensor:
    return self if self.dim() < 2 else aten.permute.default(self, [1, 0])


@instead_of(aten.numpy_T.default)
def _numpy_t(self: Tensor) -> Tensor:
    return aten.permute.default(self, list(range(self.dim() - 1, -1, -1)))


@instead_of(aten.transpose.int)
def _transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(self.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


@instead_of(aten.flatten.using_ints)
def _flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if self.dim() == 0:
        return aten.view.default(self, [1])
    start, end = start_dim % self.dim(), end_dim % self.dim()
    if start == end:
        return self
    size: int = 1
    for n in self.shape[start : end + 1]:
        size = size * n
    return _reshaped(self, [*self.shape[:start], size, *self.shape[end + 1 :]])


def _reshaped(self: Tensor, shape: list[int]) -> Tensor:
    try:
        self.detach().view([int(n) for n in shape])
    except RuntimeError:
        self = aten.clone.default(self, memory_format=_contiguous())
    return aten.view.default(self, shape)


@instead_of(aten.reshape.default)
def _reshape(self: Tensor, shape: list[int]) -> Tensor:
    return _reshaped(self, shape)


@instead_of(aten.contiguous.default)
def _contiguous_copy(self: Tensor, *, memory_format: Any = None) -> Tensor:
    wanted = _contiguous() if memory_format is None else memory_format
    return self if self.is_contiguous(memory_format=wanted) else aten.clone.default(self, memory_format=wanted)


@instead_of(aten.expand_as.default)
def _expand_as(self: Tensor, other: Tensor) -> Tensor:
    return aten.expand.default(self, list(other.shape))


@instead_of(aten.chunk.default)
def _chunk(self: Tensor, chunks: int, dim: int = 0) -> Any:
    n = int(self.shape[dim])
    size = max(-(-n // chunks), 1)
    return aten.split_with_sizes.default(self, [min(size, n - i) for i in range(0, n, size)], dim)


@instead_of(aten.split.Tensor)
def _split(self: Tensor, split_size: int, dim: int = 0) -> Any:
    n = int(self.shape[dim])
    sizes = [min(split_size, n - i) for i in range(0, n, max(split_size, 1))]
    return aten.split_with_sizes.default(self, sizes, dim)


@instead_of(aten.max_pool2d.default)
def _max_pool2d(self: Tensor, *args: Any) -> Tensor:
    return aten.max_pool2d_with_indices.default(self, *args)[0]


@instead_of(aten.adaptive_avg_pool2d.default)
def _adaptive_avg_pool2d(self: Tensor, size: list[int]) -> Tensor:
    if list(size) == [1, 1]:
        return aten.mean.dim(self, [-1, -2], True)
    return aten._adaptive_avg_pool2d.default(self, size)


@instead_of(aten.to.dtype)
def _to_dtype(self: Tensor, dtype: Any, *rest: Any) -> Tensor:
    return self if self.dtype == dtype else aten._to_copy.default(self, dtype=dtype)


@instead_of(aten.type_as.default)
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    return _to_dtype(self, other.dtype)


@instead_of(aten.zeros.default)
def _zeros(size: Any, **named: Any) -> Tensor:
    return aten.full.default(
        size, 0 if named.get("dtype") is not None and not named["dtype"].is_floating_point else 0.0, **named
    )


@instead_of(aten.ones.default)
def _ones(size: Any, **named: Any) -> Tensor:
    return aten.full.default(
        size, 1 if named.get("dtype") is not None and not named["dtype"].is_floating_point else 1.0, **named
    )


@instead_of(aten.rsub.Scalar)
def _rsub(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return aten.add.Tensor(aten.mul.Tensor(self, -alpha), other)


@instead_of(aten.square.default)
def _square(self: Tensor) -> Tensor:
    return aten.pow.Tensor_Scalar(self, 2)


@instead_of(aten.silu.default)
def _silu(self: Tensor) -> Tensor:
    return aten.mul.Tensor(self, aten.sigmoid.default(self))


@instead_of(aten.matmul.default)
def _matmul(self: Tensor, other: Tensor) -> Tensor:
    a, b = self.dim(), other.dim()
    if a == 1 and b == 1:
        return aten.sum.dim_IntList(aten.mul.Tensor(self, other), [0])
    if a == 2 and b == 2:
        return aten.mm.default(self, other)
    if a == 2 and b == 1:
        return aten.mv.default(self, other)
    if a == 1:
        return aten.squeeze.dim(_matmul(aten.unsqueeze.default(self, 0), other), -2)
    if b == 1:
        return aten.squeeze.dim(_matmul(self, aten.unsqueeze.default(other, 1)), -1)
    if b == 2:
        return _linear(self, aten.permute.default(other, [1, 0]))
    rank = max(a, b)
    ones, twos = [1] * (rank - a) + list(self.shape), [1] * (rank - b) + list(other.shape)
    batch = [m if int(n) == 1 else n for n, m in zip(ones[:-2], twos[:-2])]
    rows: int = 1
    for n in batch:
        rows = rows * n
    left = _reshaped(aten.expand.default(self, [*batch, *ones[-2:]]), [rows, *ones[-2:]])
    right = _reshaped(aten.expand.default(other, [*batch, *twos[-2:]]), [rows, *twos[-2:]])
    return aten.view.default(aten.bmm.default(left, right), [*batch, ones[-2], twos[-1]])


@instead_of(aten.scaled_dot_product_attention.default)
def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
    if enable_gqa or key.dim() < 3 or dropout_p > 0:
        return NotImplemented  # type: ignore[no-any-return]
    factor = math.sqrt(1.0 / math.sqrt(int(query.shape[-1])) if scale is None else scale)
    scores = _matmul(aten.mul.Tensor(query, factor), aten.mul.Tensor(_transpose(key, -2, -1), factor))
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        kept = aten.tril.default(aten.full.default([rows, columns], True, dtype=_bool(), device=query.device))
        scores = aten.where.ScalarOther(kept, scores, float("-inf"))
    elif attn_mask is not None and attn_mask.dtype == _bool():
        scores = aten.where.ScalarOther(attn_mask, scores, float("-inf"))
    elif attn_mask is not None:
        scores = aten.add.Tensor(scores, attn_mask)
    return _matmul(aten._safe_softmax.default(scores, -1), value)


def _bool() -> Any:
    from .. import _C

    return _C.bool


@instead_of(aten.masked_fill.Scalar)
def _masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    return aten.where.ScalarSelf(mask, value, self)


@instead_of(aten.lift_fresh_copy.default)
def _lift(self: Tensor) -> Tensor:
    return aten.clone.default(self)


@instead_of(aten._assert_tensor_metadata.default)
def _no_check(*args: Any, **kwargs: Any) -> None:
    return None
