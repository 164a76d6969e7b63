"""Joining, repeating, padding, shifting and masking by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._graph import Graph, Val, axis_of, dims_of, op, product
from .elementwise import operand
from .view import sizes


@op("cat", "concat", "concatenate")
def cat(g: Graph, tensors: Sequence[Val], dim: int = 0) -> Val:
    kept = [t for t in tensors if not (t.shape is not None and len(t.shape) == 1 and t.shape[0] == 0)] or list(tensors)
    if len(kept) == 1:
        return g.cast(kept[0], g.out.dtype)
    axis = axis_of(dim, kept[0].ndim)
    shape = list(kept[0].shape or [])
    shape[axis] = sum((t.shape[axis] for t in kept[1:] if t.shape), start=shape[axis])
    return g.op("Concat", [g.cast(t, g.out.dtype) for t in kept], g.out.dtype, shape, axis=axis)


@op("stack")
def stack(g: Graph, tensors: Sequence[Val], dim: int = 0) -> Val:
    axis = axis_of(dim, tensors[0].ndim + 1)
    return cat(g, [g.unsqueeze(t, [axis]) for t in tensors], axis)


@op("hstack", "column_stack", "vstack", "row_stack", "dstack")
def _stacks(g: Graph, tensors: Sequence[Val]) -> Val:
    least, axis = {"hstack": (1, 1), "column_stack": (2, 1), "dstack": (3, 2)}.get(g.key, (2, 0))
    parts = []
    for t in tensors:
        while t.ndim < least:
            t = g.unsqueeze(t, [t.ndim if g.key != "vstack" and g.key != "row_stack" or t.ndim == 0 else 0])
        parts.append(t)
    if g.key == "hstack" and parts[0].ndim == 1:
        axis = 0
    if g.key == "dstack" and tensors[0].ndim == 1:
        parts = [g.unsqueeze(g.unsqueeze(t, [0]), [2]) for t in tensors]
    return cat(g, parts, axis)


@op("repeat")
def repeat(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    times = sizes(args) if args else list(kwargs["repeats"])
    x = g.unsqueeze(input, list(range(len(times) - input.ndim)))
    shape = [n * k if k != 1 else n for n, k in zip(x.shape or [], times)]
    return g.op("Tile", [x, g.ints(times)], x.dtype, shape)


@op("tile")
def tile(g: Graph, input: Val, *dims: Any, **kwargs: Any) -> Val:
    times = list(kwargs.get("dims", sizes(dims) if dims else []))
    return repeat(g, input, [1] * (input.ndim - len(times)) + times)


@op("repeat_interleave")
def repeat_interleave(
    g: Graph, input: Val, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Val:
    if isinstance(repeats, Val):
        if repeats.tensor is None:
            g.unsupported("a number of repeats that is computed")
        assert repeats.tensor is not None
        if repeats.tensor.numel() != 1:
            index = _C.ops["repeat_interleave"](repeats.tensor)
            flat = g.reshape(input, [product(input.shape or [])]) if dim is None else input
            return g.op("Gather", [flat, g.constant(index)], input.dtype, axis=axis_of(dim or 0, flat.ndim))
        repeats = int(repeats.tensor)
    x = input
    if dim is None:
        x, dim = g.reshape(input, [product(input.shape or [])]), 0
    axis = axis_of(dim, x.ndim)
    shape = list(x.shape or [])
    wide = g.expand(g.unsqueeze(x, [axis + 1]), [*shape[: axis + 1], repeats, *shape[axis + 1 :]])
    return g.reshape(wide, [*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])


@op("flip", "fliplr", "flipud")
def flip(g: Graph, input: Val, *dims: Any, **kwargs: Any) -> Val:
    axes = {"fliplr": [1], "flipud": [0]}.get(g.key) or dims_of(kwargs.get("dims", sizes(dims)), input.ndim)
    n = len(axes)
    low = -(1 << 63) + 1
    ends = [g.ints(v) for v in ([-1] * n, [low] * n, axes, [-1] * n)]
    return g.op("Slice", [input, *ends], input.dtype, input.shape)


@op("roll")
def roll(g: Graph, input: Val, shifts: Any, dims: Any = None) -> Val:
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        shape = input.shape or []
        flat = g.reshape(input, [product(shape)])
        return g.reshape(_rolled(g, flat, shifts[0] if isinstance(shifts, (list, tuple)) else shifts, 0), shape)
    shifts = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    x = input
    for shift, axis in zip(shifts, dims_of(dims, input.ndim)):
        x = _rolled(g, x, shift, axis)
    return x


def _rolled(g: Graph, x: Val, shift: Any, axis: int) -> Val:
    size = (x.shape or [])[axis]
    at = size - shift % size
    parts = [g.slice(x, axis, at, (1 << 63) - 1), g.slice(x, axis, 0, at)]
    return g.op("Concat", parts, x.dtype, x.shape, axis=axis)


@op("rot90")
def rot90(g: Graph, input: Val, k: int = 1, dims: Sequence[int] = (0, 1)) -> Val:
    a, b = dims_of(dims, input.ndim)
    order = list(range(input.ndim))
    order[a], order[b] = b, a
    if k % 4 == 0:
        return input
    if k % 4 == 2:
        return g.call("flip", input, [a, b])
    if k % 4 == 1:
        return g.call("flip", g.transpose(input, order), [a])
    return g.transpose(g.call("flip", input, [a]), order)


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@op("pad", "constant_pad_nd")
def pad(g: Graph, input: Val, pad: Sequence[Any], mode: Any = "constant", value: Any = None) -> Val:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
    axes = range(input.ndim - len(pairs), input.ndim)
    if mode == "circular":
        return _circular(g, input, pairs, axes)
    untouched = [(0, 0)] * (input.ndim - len(pairs))
    before, after = zip(*untouched, *pairs) if input.ndim else ((), ())
    shape = [n + a + b for n, a, b in zip(input.shape or [], before, after)]
    x, kind = input, input.dtype
    if kind == _C.bool:
        x = g.cast(x, _C.int32)
    filler = operand(g, value or 0, x.dtype) if mode == "constant" else None
    padded = g.op("Pad", [x, g.ints([*before, *after]), filler], x.dtype, shape, mode=_MODES[mode])
    return g.cast(padded, kind)


def _circular(g: Graph, x: Val, pairs: list[Any], axes: Any) -> Val:
    for (before, after), axis in zip(pairs, axes):
        size = (x.shape or [])[axis]
        if (type(before) is int and before < 0) or (type(after) is int and after < 0):
            x = g.slice(x, axis, max(-before, 0), size + min(after, 0))
            x.shape = [-1 if i == axis else n for i, n in enumerate(g.out.shape or [])]
            g.static([size, before, after], "circular padding by less than zero of a size")
            size = size + min(after, 0) - max(-before, 0)
            x.shape[axis] = size
            before, after = max(before, 0), max(after, 0)
        parts = [g.slice(x, axis, size - before, size)] if before != 0 else []
        parts += [x] + ([g.slice(x, axis, 0, after)] if after != 0 else [])
        shape = [n + before + after if i == axis else n for i, n in enumerate(x.shape or [])]
        x = g.op("Concat", parts, x.dtype, shape, axis=axis) if len(parts) > 1 else x
    return x


@op("tril", "triu")
def triangle(g: Graph, input: Val, diagonal: Any = 0) -> Val:
    x = input
    narrow = x.dtype not in (_C.float32, _C.float64, _C.int64, _C.bool)
    if narrow:
        x = g.cast(x, _C.float32 if x.is_float else _C.int64)
    k = g.number(diagonal, _C.int64)
    r = g.op("Trilu", [x, k], x.dtype, x.shape, upper=int(g.key.startswith("triu")))
    return g.cast(r, input.dtype)


@op("meshgrid")
def meshgrid(g: Graph, *tensors: Any, indexing: str | None = None) -> list[Val]:
    every = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    swap = indexing == "xy" and len(every) > 1
    lengths = [t.shape[0] if t.shape else 1 for t in every]
    order = [1, 0, *range(2, len(every))] if swap else list(range(len(every)))
    shape = [lengths[i] for i in order]
    results = []
    for i, t in enumerate(every):
        at = order.index(i)
        results.append(g.expand(g.reshape(t, [lengths[i] if j == at else 1 for j in range(len(every))]), shape))
    return results


@op("channel_shuffle")
def channel_shuffle(g: Graph, input: Val, groups: int) -> Val:
    n, c, *rest = input.shape or []
    x = g.reshape(input, [n, groups, c // groups, *rest])
    return g.reshape(g.transpose(x, [0, 2, 1, *range(3, x.ndim)]), [n, c, *rest])


@op("diag_embed")
def diag_embed(g: Graph, input: Val, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Val:
    if offset or dims_of([dim1, dim2], input.ndim + 1) != [input.ndim - 1, input.ndim]:
        g.unsupported("an offset or other dimensions")
    return _on_diagonal(g, input)


def _on_diagonal(g: Graph, x: Val) -> Val:
    n = (x.shape or [])[-1]
    index = g.op("Range", [g.number(0, _C.int64), g.size(n), g.number(1, _C.int64)], _C.int64, [n])
    same = g.op("Equal", [g.unsqueeze(index, [1]), index], _C.bool, [n, n])
    wide = g.unsqueeze(x, [x.ndim - 1])
    return g.op("Where", [same, wide, g.number(0, x.dtype)], x.dtype, [*(x.shape or []), n])


@op("diag")
def diag(g: Graph, input: Val, diagonal: int = 0) -> Val:
    if input.ndim == 2:
        return g.call("diagonal", input, diagonal)
    if diagonal:
        g.unsupported("an offset")
    return _on_diagonal(g, input)
