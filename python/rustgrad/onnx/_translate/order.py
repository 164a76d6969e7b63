"""Sorting, selection of the largest, counting."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._graph import SMALL, Graph, Val, axis_of, op, product
from .elementwise import operand


def _top(g: Graph, x: Val, k: Any, axis: int, largest: bool, is_sorted: bool) -> list[Val]:
    wanted = x.dtype
    x = g.cast(x, _C.int32) if wanted in SMALL or wanted == _C.bool else x
    kinds = [x.dtype, _C.int64]
    count = k if isinstance(k, Val) else g.size(k, 1)
    values, indices = g.several("TopK", [x, count], kinds, axis=axis, largest=int(largest), sorted=int(is_sorted))
    shape = [k if i == axis else n for i, n in enumerate(x.shape or [])]
    values.shape = indices.shape = shape
    return [g.cast(values, wanted), indices]


@op("topk")
def topk(g: Graph, input: Val, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Val]:
    return _top(g, input, k, axis_of(dim, input.ndim), largest, sorted)


@op("sort", "msort")
def sort(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Any:
    given = dict(zip(("dim", "descending"), args), **kwargs)
    axis = axis_of(given.get("dim", 0 if g.key == "msort" else -1), input.ndim)
    # TopK takes equal elements in their order, so this is stable.
    found = _top(g, input, (input.shape or [])[axis], axis, bool(given.get("descending", False)), True)
    return found[0] if g.key == "msort" else found


@op("argsort")
def argsort(g: Graph, input: Val, dim: int = -1, descending: bool = False, stable: bool = False) -> Val:
    axis = axis_of(dim, input.ndim)
    return _top(g, input, (input.shape or [])[axis], axis, descending, True)[1]


@op("kthvalue")
def kthvalue(g: Graph, input: Val, k: int, dim: int = -1, keepdim: bool = False) -> list[Val]:
    axis = axis_of(dim, input.ndim)
    found = _top(g, input, k, axis, False, True)
    last = [g.op("Gather", [v, g.ints([k - 1])], v.dtype, [1 if i == axis else n for i, n in enumerate(input.shape or [])], axis=axis)
            for v in found]  # fmt: skip
    return last if keepdim else [g.squeeze(v, [axis]) for v in last]


@op("median")
def median(g: Graph, input: Val, dim: int | None = None, keepdim: bool = False) -> Any:
    shape = g.static(input.shape or [], "a median")
    if dim is None:
        flat = g.reshape(input, [product(shape)])
        return kthvalue(g, flat, (product(shape) + 1) // 2, 0)[0]
    return kthvalue(g, input, (shape[axis_of(dim, input.ndim)] + 1) // 2, dim, keepdim)


@op("unique")
def unique(
    g: Graph,
    input: Val,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    kinds = [input.dtype, _C.int64, _C.int64, _C.int64]
    found, _, inverse, counts = g.several("Unique", [input], kinds, axis=dim, sorted=1)
    inverse = g.reshape(inverse, input.shape or []) if dim is None else inverse
    return [found, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]


@op("bucketize", "searchsorted")
def bucketize(
    g: Graph,
    input: Val,
    boundaries: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Val:
    if sorter is not None:
        g.unsupported("a sorter")
    right = right or side == "right"
    edges, x = (boundaries, input) if g.key == "bucketize" else (input, boundaries)
    if edges.ndim != 1:
        g.unsupported("sorted sequences of several dimensions")
    kind = edges.dtype
    value = operand(g, x, kind)
    wide = g.unsqueeze(value, [len(value.shape or [])])
    below = g.op(
        "GreaterOrEqual" if right else "Greater", [wide, edges], _C.bool, [*(value.shape or []), *(edges.shape or [])]
    )
    return g.cast(g.reduce("ReduceSum", g.cast(below, _C.int64), [below.ndim - 1], False), g.out.dtype)


@op("one_hot")
def one_hot(g: Graph, input: Val, num_classes: int = -1) -> Val:
    if num_classes == -1:
        g.unsupported("num_classes=-1")
    ends = g.constant(_C.ops["arange"](2, dtype=_C.int64))
    return g.op("OneHot", [input, g.ints([num_classes]), ends], _C.int64, g.out.shape, axis=-1)
