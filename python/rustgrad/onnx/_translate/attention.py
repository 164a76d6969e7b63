"""Matrix products and attention."""

from __future__ import annotations

import math
import string
from typing import Any

from ... import _C
from .._graph import Graph, Val, dims_of, op
from .logic import isnan


def matmul2(g: Graph, a: Val, b: Val) -> Val:
    """A product in the wanted dtype."""
    kind = g.out.dtype
    compute = kind if kind.is_floating_point or kind in (_C.int64, _C.int32) else _C.int32
    shape = [*(a.shape or [])[:-1], (b.shape or [-1])[-1]] if a.ndim >= b.ndim > 1 else None
    return g.cast(g.op("MatMul", [g.cast(a, compute), g.cast(b, compute)], compute, shape), kind)


@op("linear")
def linear(g: Graph, input: Val, weight: Val, bias: Val | None = None) -> Val:
    kind = g.out.dtype
    x, w = g.cast(input, kind), g.cast(weight, kind)
    b = None if bias is None else g.cast(bias, kind)
    if x.ndim == 2 and w.ndim == 2:
        return g.op("Gemm", [x, w, b], kind, g.out.shape, transB=1)
    key = ("transposed", w.name)
    if w.ndim == 2 and key not in g.constants:
        g.constants[key] = g.transpose(w, [1, 0])
    y = g.op("MatMul", [x, g.constants[key] if w.ndim == 2 else w], kind, g.out.shape)
    return y if b is None else g.op("Add", [y, b], kind, g.out.shape)


@op("matmul", "__matmul__", "mm", "bmm", "mv", "dot", "vdot")
def matmul(g: Graph, input: Val, other: Val) -> Val:
    return matmul2(g, input, other)


@op("__rmatmul__")
def rmatmul(g: Graph, input: Val, other: Val) -> Val:
    return matmul2(g, other, input)


@op("addmm", "addmv", "baddbmm", "addbmm", "addr")
def addmm(g: Graph, input: Val, first: Val, second: Val, *, beta: Any = 1, alpha: Any = 1) -> Val:
    kind = g.out.dtype
    if g.key.startswith("addmm") and kind.is_floating_point:
        return g.op("Gemm", [first, second, input], kind, g.out.shape, alpha=float(alpha), beta=float(beta))
    if g.key.startswith("addr"):
        product_ = g.op("Mul", [g.unsqueeze(first, [1]), second], kind, g.out.shape)
    else:
        product_ = matmul2(g, first, second)
    if g.key.startswith("addbmm"):
        product_ = g.reduce("ReduceSum", product_, [0], False)
    parts = [(input, beta), (product_, alpha)]
    scaled = [v if k == 1 else g.op("Mul", [v, g.number(k, kind)], kind, v.shape) for v, k in parts]
    return g.op("Add", scaled, kind, g.out.shape)


@op("outer", "ger")
def outer(g: Graph, input: Val, vec2: Val) -> Val:
    kind = g.out.dtype
    return g.op("Mul", [g.unsqueeze(g.cast(input, kind), [1]), g.cast(vec2, kind)], kind, g.out.shape)


@op("einsum")
def einsum(g: Graph, equation: str, *operands: Any) -> Val:
    every = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    kind = g.out.dtype
    return g.op("Einsum", [g.cast(v, kind) for v in every], kind, g.out.shape, equation=equation.replace(" ", ""))


@op("tensordot")
def tensordot(g: Graph, a: Val, b: Val, dims: Any = 2, **kwargs: Any) -> Val:
    if isinstance(dims, int):
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    first, second = dims_of(dims[0], a.ndim), dims_of(dims[1], b.ndim)
    letters = iter(string.ascii_lowercase)
    left = [next(letters) for _ in range(a.ndim)]
    right = [left[first[second.index(i)]] if i in second else next(letters) for i in range(b.ndim)]
    kept = [c for i, c in enumerate(left) if i not in first] + [c for i, c in enumerate(right) if i not in second]
    return einsum(g, f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


@op("inner")
def inner(g: Graph, input: Val, other: Val) -> Val:
    if input.ndim == 0 or other.ndim == 0:
        return g.op("Mul", [input, other], g.out.dtype, g.out.shape)
    return tensordot(g, input, other, ([input.ndim - 1], [other.ndim - 1]))


@op("linalg.multi_dot", "chain_matmul")
def multi_dot(g: Graph, *tensors: Any) -> Val:
    every = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    result = every[0]
    for other in every[1:]:
        result = matmul2(g, result, other)
    return result


@op("bilinear")
def bilinear(g: Graph, input1: Val, input2: Val, weight: Val, bias: Val | None = None) -> Val:
    y = einsum(g, "...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else g.op("Add", [y, bias], y.dtype, y.shape)


@op("linalg.inv", "inverse", "linalg.det", "det")
def _decomposition(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    if g.key in ("linalg.det", "det"):
        return g.op("Det", [input], input.dtype, g.out.shape)
    g.unsupported("an inverse")
    return input


def _scaled(g: Graph, x: Val, scale: float) -> Val:
    return g.op("Mul", [x, g.number(scale, x.dtype)], x.dtype, x.shape)


def causal(g: Graph, rows: Any, columns: Any) -> Val:
    """Which keys each query may look at: those up to its place."""
    if type(rows) is int and type(columns) is int:
        return g.constant(_C.ops["ones"]([rows, columns], dtype=_C.bool).tril(), "causal_mask")
    ranges = [
        g.op("Range", [g.number(0, _C.int64), g.size(n), g.number(1, _C.int64)], _C.int64, [n]) for n in (rows, columns)
    ]
    return g.op("LessOrEqual", [ranges[1], g.unsqueeze(ranges[0], [1])], _C.bool, [rows, columns])


def _repeated(g: Graph, x: Val, times: Any) -> Val:
    *lead, heads, length, width = x.shape or []
    wide = g.expand(g.unsqueeze(x, [x.ndim - 2]), [*lead, heads, times, length, width])
    return g.reshape(wide, [*lead, heads * times, length, width])


@op("scaled_dot_product_attention")
def attention(
    g: Graph, query: Val, key: Val, value: Val, attn_mask: Val | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> Val:  # fmt: skip
    if dropout_p:
        g.unsupported("dropout")
    kind = query.dtype
    if enable_gqa and (query.shape or [])[-3] != (key.shape or [])[-3]:
        times = (query.shape or [])[-3] // (key.shape or [])[-3]
        key, value = _repeated(g, key, times), _repeated(g, value, times)
    width = (query.shape or [])[-1]
    factor = 1 / math.sqrt(g.static(width, "a width of heads")) if scale is None else scale
    # Both factors are scaled, so that their product does not overflow in half types.
    root = math.sqrt(factor) if factor > 0 else None
    turned = g.transpose(key, [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2])
    if root is not None:
        query, turned = _scaled(g, query, root), _scaled(g, turned, root)
    shape = [*(query.shape or [])[:-1], (key.shape or [])[-2]]
    scores = g.op("MatMul", [query, turned], kind, shape)
    if root is None:
        scores = _scaled(g, scores, factor)
    mask = causal(g, shape[-2], shape[-1]) if is_causal else attn_mask
    if mask is not None:
        if mask.dtype == _C.bool:
            mask = g.op("Where", [mask, g.number(0.0, kind), g.number(-math.inf, kind)], kind, mask.shape)
        scores = g.op("Add", [scores, g.cast(mask, kind)], kind, shape)
    weights = g.same("Softmax", scores, axis=len(shape) - 1)
    if attn_mask is not None:
        # A query whose keys are all masked has weights of zero.
        weights = g.op("Where", [isnan(g, weights), g.number(0.0, kind), weights], kind, shape)
    return g.op("MatMul", [weights, value], kind, g.out.shape)
