"""How many floating-point operations an op takes, by the shapes of its arguments; two for each product that is added.

`flop_registry` has these by op, as functions of tensors: `flop_registry[ops.aten.mm](a, b, out_val=c)`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._ops import ops
from ._pytree import tree_map

Shape = Sequence[int]
flop_registry: dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else is itself."""
    return i.shape if isinstance(i, _C.Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors."""

    @functools.wraps(f)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def _of(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Registers a formula for those ops of the names that are here, and leaves it as it is."""

    def register(f: Callable[..., int]) -> Callable[..., int]:
        for name in names:
            op = getattr(ops.aten, name, None)
            if op is not None:
                flop_registry[op] = shape_wrapper(f)
        return f

    return register


def _same(*pairs: tuple[int, int]) -> None:
    for a, b in pairs:
        if a != b:
            raise AssertionError(f"flop formula: sizes that have to agree are {a} and {b}")


@_of("mm")
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product of matrices (m, k) and (k, n)."""
    (m, k), (k2, n) = a_shape, b_shape
    _same((k, k2))
    return 2 * m * n * k


@_of("addmm")
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, *args: Any, **kwargs: Any) -> int:
    """Of the product in `addmm`."""
    return mm_flop(a_shape, b_shape)


@_of("bmm")
def bmm_flop(a_shape: Shape, b_shape: Shape, *args: Any, **kwargs: Any) -> int:
    """Of products of matrices (b, m, k) and (b, k, n)."""
    (b, m, k), (b2, k2, n) = a_shape, b_shape
    _same((b, b2), (k, k2))
    return 2 * b * m * n * k


@_of("baddbmm")
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, *args: Any, **kwargs: Any) -> int:
    """Of the products in `baddbmm`."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Of a convolution, padding included.

    Args:
        x_shape, w_shape, out_shape: of the input, the weight and the result.
        transposed (bool): each place of the input counts, not each of the result.
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(places) * math.prod(w_shape)


@_of("convolution", "_convolution", "cudnn_convolution", "_slow_conv2d_forward", "convolution_overrideable")
def conv_flop(
    x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Of `aten.convolution`, by its arguments."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def conv_weight_flop(grad_shape: Shape, x_shape: Shape, kernel: Shape, transposed: bool) -> int:
    """Of the gradient of a convolution's weight, as if each channel met each: groups do not make it less."""
    places = x_shape if transposed else grad_shape
    return 2 * places[0] * math.prod(places[2:]) * grad_shape[1] * x_shape[1] * math.prod(kernel)


@_of("convolution_backward")
def conv_backward_flop(
    grad_out_shape: Shape, x_shape: Shape, w_shape: Shape, _bias: Any, _stride: Any, _padding: Any, _dilation: Any,
    transposed: bool, _output_padding: Any, _groups: Any, output_mask: Sequence[bool], out_shape: Any, **kwargs: Any,
) -> int:  # fmt: skip
    """Of the gradients of a convolution's input and weight, those that `output_mask` asks for."""
    flops = conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed) if output_mask[0] else 0
    if output_mask[1]:
        flops += conv_weight_flop(grad_out_shape, x_shape, w_shape[2:], transposed)
    return flops


def _attention_sizes(query: Shape, key: Shape, value: Shape) -> tuple[int, int, int]:
    (b, heads, _, d), (b2, kv_heads, keys, d2), (b3, heads3, keys3, _) = query, key, value
    _same((b, b2), (b, b3), (kv_heads, heads3), (d, d2), (keys, keys3))
    if heads < kv_heads or heads % kv_heads:
        raise AssertionError(f"query heads ({heads}) must be a multiple of key/value heads ({kv_heads})")
    return math.prod(query[:3]) * keys, d, value[3]


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of attention: shapes (b, heads, places, channels). Several heads of queries may share one of keys and values."""
    scores, d, d_value = _attention_sizes(query_shape, key_shape, value_shape)
    return 2 * scores * (d + d_value)


_ATTENTION = [f"_scaled_dot_product_{kind}_attention" for kind in ("efficient", "flash", "cudnn")]
_ATTENTION.append("_scaled_dot_product_flash_attention_for_cpu")


@_of(*_ATTENTION)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Of an op of attention, by its arguments."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of the gradients of attention: the scores again, and the gradients of both products by both factors."""
    scores, d, d_value = _attention_sizes(query_shape, key_shape, value_shape)
    _same(*zip(grad_out_shape, (*query_shape[:3], d_value), strict=True))
    return 2 * scores * (3 * d + 2 * d_value)


@_of(*(f"{name}_backward" for name in _ATTENTION))
def sdpa_backward_flop(
    grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None,
    **kwargs: Any,
) -> int:  # fmt: skip
    """Of an op of the gradients of attention, by its arguments."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)
