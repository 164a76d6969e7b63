"""Reductions, scans and norms."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._graph import SMALL, Graph, Val, axis_of, dims_of, op, product
from .elementwise import binary
from .logic import isnan, truth


def axes(dim: Any, x: Val) -> list[int] | None:
    """The dimensions of a reduction; None for all of them."""
    if dim is None or isinstance(dim, (list, tuple)) and not dim:
        return None
    return dims_of(dim, x.ndim) if x.ndim else None


def reduced(g: Graph, kind: str, x: Val, dim: Any, keepdim: bool) -> Val:
    """A reduction in a dtype that runtimes have it for."""
    wanted = x.dtype
    narrow = wanted in SMALL or wanted == _C.bool
    r = g.reduce(kind, g.cast(x, _C.int32) if narrow else x, axes(dim, x), keepdim)
    return g.cast(r, wanted)


@op("sum")
def sum(g: Graph, input: Val, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Val:
    return reduced(g, "ReduceSum", g.cast(input, g.out.dtype), dim, keepdim)


@op("mean")
def mean(g: Graph, input: Val, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Val:
    return reduced(g, "ReduceMean", g.cast(input, g.out.dtype), dim, keepdim)


@op("prod")
def prod(g: Graph, input: Val, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Val:
    return reduced(g, "ReduceProd", g.cast(input, g.out.dtype), dim, keepdim)


@op("nansum", "nanmean")
def nansum(g: Graph, input: Val, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Val:
    bad = isnan(g, input)
    filled = g.op("Where", [bad, g.number(0, input.dtype), input], input.dtype, input.shape)
    total = g.reduce("ReduceSum", filled, axes(dim, input), keepdim)
    if g.key == "nansum":
        return total
    good = g.cast(g.op("Not", [bad], _C.bool, input.shape), input.dtype)
    return g.op("Div", [total, g.reduce("ReduceSum", good, axes(dim, input), keepdim)], input.dtype, g.out.shape)


@op("amax")
def amax(g: Graph, input: Val, dim: Any = None, keepdim: bool = False) -> Val:
    return reduced(g, "ReduceMax", input, dim, keepdim)


@op("amin")
def amin(g: Graph, input: Val, dim: Any = None, keepdim: bool = False) -> Val:
    return reduced(g, "ReduceMin", input, dim, keepdim)


@op("aminmax")
def aminmax(g: Graph, input: Val, *, dim: Any = None, keepdim: bool = False) -> list[Val]:
    return [reduced(g, kind, input, dim, keepdim) for kind in ("ReduceMin", "ReduceMax")]


@op("max", "min")
def extreme(g: Graph, input: Val, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    other = kwargs.get("other", dim)
    largest = g.key == "max"
    if isinstance(other, Val):
        return g.call("maximum" if largest else "minimum", input, other)
    kind = "ReduceMax" if largest else "ReduceMin"
    if dim is None:
        return reduced(g, kind, input, None, False)
    return [reduced(g, kind, input, [dim], keepdim), _position(g, input, dim, keepdim, largest)]


def _position(g: Graph, x: Val, dim: Any, keepdim: bool, largest: bool) -> Val:
    if x.dtype in SMALL or x.dtype in (_C.bool, _C.int64):
        x = g.cast(x, _C.int32 if x.dtype != _C.int64 else _C.int64)
    axis = axis_of(dim, x.ndim)
    return g.op("ArgMax" if largest else "ArgMin", [x], _C.int64, axis=axis, keepdims=int(keepdim))


@op("argmax", "argmin")
def argmax(g: Graph, input: Val, dim: Any = None, keepdim: bool = False) -> Val:
    largest = g.key == "argmax"
    if dim is None:
        flat = g.reshape(input, [product(input.shape or [])])
        r = _position(g, flat, 0, False, largest)
        return g.reshape(r, [1] * input.ndim) if keepdim else r
    return _position(g, input, dim, keepdim, largest)


@op("all", "any")
def all(g: Graph, input: Val, dim: Any = None, keepdim: bool = False) -> Val:
    x = g.cast(truth(g, input), _C.int32)
    kind = "ReduceMin" if g.key == "all" else "ReduceMax"
    return g.cast(g.reduce(kind, x, axes(dim, x), keepdim), g.out.dtype)


@op("logsumexp", "special.logsumexp")
def logsumexp(g: Graph, input: Val, dim: Any, keepdim: bool = False) -> Val:
    return g.reduce("ReduceLogSumExp", g.cast(input, g.out.dtype), axes(dim, input), keepdim)


@op("count_nonzero")
def count_nonzero(g: Graph, input: Val, dim: Any = None) -> Val:
    return g.reduce("ReduceSum", g.cast(truth(g, input), _C.int64), axes(dim, input), False)


def count(g: Graph, x: Val, dim: Any, kind: Any) -> Any:
    """How many elements a reduction takes together."""
    shape = x.shape or []
    found = axes(dim, x)
    return product([n for i, n in enumerate(shape) if found is None or i in found])


def variance(g: Graph, x: Val, dim: Any, keepdim: bool, correction: Any) -> tuple[Val, Val]:
    """The variance and the mean along dimensions."""
    center = g.reduce("ReduceMean", x, axes(dim, x), True)
    apart = g.op("Sub", [x, center], x.dtype, x.shape)
    square = g.op("Mul", [apart, apart], x.dtype, x.shape)
    n = count(g, x, dim, x.dtype)
    mean = center if keepdim else g.reduce("ReduceMean", x, axes(dim, x), False)
    if correction == 0:
        return g.reduce("ReduceMean", square, axes(dim, x), keepdim), mean
    total = g.reduce("ReduceSum", square, axes(dim, x), keepdim)
    if isinstance(correction, float) and correction.is_integer():
        correction = int(correction)
    left = n - correction
    return g.op("Div", [total, g.number(left, x.dtype)], x.dtype, total.shape), mean


@op("var", "std", "var_mean", "std_mean")
def var(g: Graph, input: Val, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = kwargs.get("correction", 1 if unbiased is None or unbiased else 0)
    result, mean = variance(g, input, dim, keepdim, 1 if correction is None else correction)
    if g.key.startswith("std"):
        result = g.same("Sqrt", result)
    return [result, mean] if g.key.endswith("_mean") else result


@op("norm", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm")
def norm(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    p, dim, keepdim = [*args, *[None] * 3][:3]
    default = "fro" if g.key == "linalg.matrix_norm" else 2
    p = kwargs.get("p", kwargs.get("ord", default if p is None else p))
    dim = kwargs.get("dim", (-2, -1) if g.key == "linalg.matrix_norm" and dim is None else dim)
    keepdim = bool(kwargs.get("keepdim", keepdim))
    several = input.ndim == 2 and dim is None or isinstance(dim, (list, tuple)) and len(dim) == 2
    if (
        g.key in ("linalg.norm", "linalg.matrix_norm")
        and several
        and p not in ("fro", 2 if args == () and "ord" not in kwargs else "fro")
    ):
        g.unsupported(f"a matrix norm of order {p!r}")
    return _norm(g, g.cast(input, g.out.dtype), 2 if p in ("fro", None) else p, dim, keepdim)


def _norm(g: Graph, x: Val, p: Any, dim: Any, keepdim: bool) -> Val:
    if p == 2 or p == 1:
        return g.reduce("ReduceL2" if p == 2 else "ReduceL1", x, axes(dim, x), keepdim)
    size = g.same("Abs", x)
    if math.isinf(p):
        return g.reduce("ReduceMax" if p > 0 else "ReduceMin", size, axes(dim, x), keepdim)
    if p == 0:
        some = g.cast(g.cast(x, _C.bool), x.dtype)
        return g.reduce("ReduceSum", some, axes(dim, x), keepdim)
    total = g.reduce("ReduceSum", g.op("Pow", [size, g.number(p, x.dtype)], x.dtype, x.shape), axes(dim, x), keepdim)
    return g.op("Pow", [total, g.number(1 / p, x.dtype)], x.dtype, total.shape)


@op("normalize")
def normalize(g: Graph, input: Val, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Val:
    length = _norm(g, input, p, dim, True)
    floor = g.op("Max", [length, g.number(eps, input.dtype)], input.dtype, length.shape)
    return g.op("Div", [input, floor], input.dtype, input.shape)


@op("dist")
def dist(g: Graph, input: Val, other: Val, p: float = 2) -> Val:
    return _norm(g, g.op("Sub", [input, other], input.dtype), p, None, False)


@op("cosine_similarity")
def cosine_similarity(g: Graph, x1: Val, x2: Val, dim: int = 1, eps: float = 1e-8) -> Val:
    kind = g.out.dtype
    axis = [axis_of(dim, max(x1.ndim, x2.ndim))]
    dot = g.reduce("ReduceSum", g.op("Mul", [x1, x2], kind, x1.shape), axis, False)
    floor = g.number(eps, kind)
    lengths = [g.op("Max", [_norm(g, x, 2, dim, False), floor], kind) for x in (x1, x2)]
    return g.op("Div", [dot, g.op("Mul", lengths, kind)], kind, g.out.shape)


@op("pairwise_distance")
def pairwise_distance(g: Graph, x1: Val, x2: Val, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Val:
    kind = g.out.dtype
    apart = g.op("Add", [g.op("Sub", [x1, x2], kind, x1.shape), g.number(eps, kind)], kind, x1.shape)
    return _norm(g, apart, p, -1, keepdim)


@op("cdist")
def cdist(g: Graph, x1: Val, x2: Val, p: float = 2.0, compute_mode: Any = None) -> Val:
    a, b = g.unsqueeze(x1, [x1.ndim - 1]), g.unsqueeze(x2, [x2.ndim - 2])
    shape = [*(a.shape or [])[:-2], (b.shape or [])[-2], 1]
    apart = g.op("Sub", [a, b], a.dtype, shape)
    return _norm(g, apart, p, -1, False)


@op("cumsum")
def cumsum(g: Graph, input: Val, dim: int, *, dtype: Any = None) -> Val:
    wanted = g.out.dtype
    compute = (
        wanted if wanted in (_C.float32, _C.float64, _C.int64, _C.int32) else _C.float32 if g.out.is_float else _C.int64
    )
    x = g.cast(input, compute)
    if x.ndim == 0:
        return g.cast(x, wanted)
    return g.cast(g.op("CumSum", [x, g.number(axis_of(dim, x.ndim), _C.int64)], compute, x.shape), wanted)


@op("cumprod", "logcumsumexp")
def cumprod(g: Graph, input: Val, dim: int, *, dtype: Any = None) -> Val:
    x = g.cast(input, g.out.dtype)
    size = (x.shape or [])[axis_of(dim, x.ndim)]
    # The lower triangle of a matrix says which elements each product takes.
    wide = g.unsqueeze(_last(g, x, dim), [x.ndim - 1])
    steps = g.op("Range", [g.number(0, _C.int64), g.size(size), g.number(1, _C.int64)], _C.int64, [size])
    below = g.op("LessOrEqual", [steps, g.unsqueeze(steps, [1])], _C.bool, [size, size])
    neutral = g.number(1 if g.key == "cumprod" else -math.inf, x.dtype)
    every = g.op("Where", [below, wide, neutral], x.dtype, [*(wide.shape or [])[:-2], size, size])
    kind = "ReduceProd" if g.key == "cumprod" else "ReduceLogSumExp"
    return _last(g, g.reduce(kind, every, [every.ndim - 1], False), dim)


def _last(g: Graph, x: Val, dim: int) -> Val:
    order = list(range(x.ndim))
    axis = axis_of(dim, x.ndim)
    order[axis], order[-1] = order[-1], order[axis]
    return g.transpose(x, order)


@op("trace")
def trace(g: Graph, input: Val) -> Val:
    rows, columns = input.shape or []
    lines = [
        g.op("Range", [g.number(0, _C.int64), g.size(n), g.number(1, _C.int64)], _C.int64, [n]) for n in (rows, columns)
    ]
    same = g.op("Equal", [g.unsqueeze(lines[0], [1]), lines[1]], _C.bool, [rows, columns])
    kept = g.op("Where", [same, input, g.number(0, input.dtype)], input.dtype, input.shape)
    return g.reduce("ReduceSum", kept, None, False)


@op("diff")
def diff(g: Graph, input: Val, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Val:
    if prepend is not None or append is not None:
        g.unsupported("prepend or append")
    x, axis = input, axis_of(dim, input.ndim)
    for _ in range(n):
        x = binary(g, "Sub", g.slice(x, axis, 1, (1 << 63) - 1), g.slice(x, axis, 0, -1))
    return x
