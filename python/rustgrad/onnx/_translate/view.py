"""Views: the elements of a tensor in another shape or order, or some of them."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._graph import Graph, Val, axis_of, dims_of, op, product


def sizes(args: tuple[Any, ...]) -> list[Any]:
    """Sizes that are given one by one or as a list."""
    first = args[0] if len(args) == 1 else args
    return list(first) if isinstance(first, (list, tuple)) else [first]


@op("view", "reshape", "_unsafe_view", "_reshape_alias", "view_as", "reshape_as", "unflatten", "flatten", "ravel")
def reshape(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    if g.out.dtype != input.dtype:
        g.unsupported("a view of the bytes as another dtype")
    shape = list(g.out.shape or [])
    if g.key in ("view", "reshape", "_unsafe_view"):
        # As the program has written it: what varies is computed from what it was computed from.
        asked = list(kwargs.get("shape", kwargs.get("size", ()))) if kwargs else sizes(args)
        if not any(type(n) is int and n == -1 for n in asked):
            return g.reshape(input, asked)
        target = g.ints(asked)
        zero = any(type(n) is int and n == 0 for n in asked)
        result = g.op("Reshape", [input, target], input.dtype, shape, allowzero=1 if zero and g.opset >= 14 else None)
        return result
    return g.reshape(input, known(g, input, shape))


def known(g: Graph, x: Val, shape: list[Any]) -> list[Any]:
    """A shape whose sizes can be computed before the result is there: from those of `x`, or -1 for one of them."""
    result = [g.alike(n, x.shape or []) if g.is_late(n) else n for n in shape]
    late = [i for i, n in enumerate(result) if g.is_late(n)]
    if len(late) > 1:
        g.unsupported("a shape with several sizes that cannot be computed from others")
    for i in late:
        result[i] = -1
    return result


@op("unsqueeze")
def unsqueeze(g: Graph, input: Val, dim: int) -> Val:
    return g.unsqueeze(input, [axis_of(dim, input.ndim + 1)])


@op("squeeze")
def squeeze(g: Graph, input: Val, dim: Any = None) -> Val:
    shape = input.shape or []
    dims = range(len(shape)) if dim is None else dims_of(dim, len(shape))
    return g.squeeze(input, [d for d in dims if type(shape[d]) is int and shape[d] == 1])


@op("transpose", "swapaxes", "swapdims")
def transpose(g: Graph, input: Val, dim0: int, dim1: int) -> Val:
    order = list(range(input.ndim))
    a, b = axis_of(dim0, input.ndim), axis_of(dim1, input.ndim)
    if order:
        order[a], order[b] = order[b], order[a]
    return g.transpose(input, order)


@op("t", "adjoint", "mT.__get__", "mH.__get__", "H.__get__")
def t(g: Graph, input: Val) -> Val:
    return transpose(g, input, -2, -1) if input.ndim > 1 else input


@op("T.__get__")
def reverse_dims(g: Graph, input: Val) -> Val:
    return g.transpose(input, range(input.ndim)[::-1])


@op("permute")
def permute(g: Graph, input: Val, *dims: Any, **kwargs: Any) -> Val:
    return g.transpose(input, dims_of(kwargs.get("dims", sizes(dims)), input.ndim))


@op("movedim", "moveaxis")
def movedim(g: Graph, input: Val, source: Any, destination: Any) -> Val:
    source, destination = dims_of(source, input.ndim), dims_of(destination, input.ndim)
    rest = iter(d for d in range(input.ndim) if d not in source)
    return g.transpose(
        input, [source[destination.index(d)] if d in destination else next(rest) for d in range(input.ndim)]
    )


@op("expand", "broadcast_to", "expand_as")
def expand(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    if args and isinstance(args[0], Val):
        return g.expand(input, args[0].shape or [])
    wanted = kwargs.get("size", sizes(args) if args else [])
    shape = [1 if type(n) is int and n == -1 else n for n in wanted]
    # Of Expand, a size of 1 leaves the size as it is.
    result = g.op("Expand", [input, g.ints(shape)], input.dtype, g.out.shape)
    return result


@op("broadcast_tensors")
def broadcast_tensors(g: Graph, *tensors: Any) -> list[Val]:
    every = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    results = []
    for x in every:
        for other in every:
            if other is not x:
                x = g.op("Expand", [x, g.shape(other)], x.dtype)
        results.append(x)
    return results


@op("select")
def select(g: Graph, input: Val, dim: int, index: Any) -> Val:
    axis = axis_of(dim, input.ndim)
    shape = [n for i, n in enumerate(input.shape or []) if i != axis]
    result = g.op("Gather", [input, g.size(index)], input.dtype, shape, axis=axis)
    return result


@op("narrow")
def narrow(g: Graph, input: Val, dim: int, start: Any, length: Any) -> Val:
    axis = axis_of(dim, input.ndim)
    if isinstance(start, Val):
        g.unsupported("a start that is a tensor")
    if type(start) is int and start < 0:
        start = start + (input.shape or [])[axis]
    return g.slice(input, axis, start, start + length)


@op("split", "split_with_sizes", "unsafe_split", "chunk", "tensor_split", "unsafe_chunk", "hsplit", "vsplit", "dsplit")
def split(g: Graph, input: Val, sections: Any = None, dim: int = 0, **kwargs: Any) -> list[Val]:
    given = kwargs.get("split_size_or_sections", kwargs.get("chunks", kwargs.get("split_size", sections)))
    axis = {"hsplit": 1 if input.ndim > 1 else 0, "vsplit": 0, "dsplit": 2}.get(g.key, axis_of(dim, input.ndim))
    if g.key == "tensor_split" and not isinstance(given, int):
        return _cut(g, input, given, axis)
    parts = _parts(g.key, (input.shape or [])[axis], given, len(g.outs))
    if len(parts) == 1:
        return [input]
    results = g.several("Split", [input, g.ints(parts)], [input.dtype] * len(parts), axis=axis)
    for r, n in zip(results, parts):
        r.shape = [n if i == axis else s for i, s in enumerate(input.shape or [])]
    return list(results)


def _parts(key: str, size: Any, given: Any, count: int) -> list[Any]:
    """The sizes of `count` parts, as the op counts them."""
    if isinstance(given, (list, tuple)):
        return list(given)
    if key.startswith(("split", "unsafe_split")):
        return [given] * (count - 1) + [size - given * (count - 1)]
    if key.endswith("chunk"):
        each = (size + given - 1) // given
        return [each] * (count - 1) + [size - each * (count - 1)]
    return [(size + given - 1 - i) // given for i in range(count)]


def _cut(g: Graph, x: Val, places: Any, axis: int) -> list[Val]:
    edges = [0, *places, (x.shape or [])[axis]]
    return [g.slice(x, axis, a, b) for a, b in zip(edges, edges[1:])]


@op("unbind")
def unbind(g: Graph, input: Val, dim: int = 0) -> list[Val]:
    return [select(g, input, dim, i) for i in range(len(g.outs))]


@op("diagonal", "linalg.diagonal")
def diagonal(g: Graph, input: Val, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Val:
    if g.key.startswith("linalg"):
        dim1, dim2 = (-2, -1) if (dim1, dim2) == (0, 1) else (dim1, dim2)
    a, b = dims_of([dim1, dim2], input.ndim)
    rest = [d for d in range(input.ndim) if d not in (a, b)]
    x = g.transpose(input, [a, b, *rest])
    rows, columns = (x.shape or [])[:2]
    length = (g.out.shape or [])[-1]
    if g.is_late(length):
        if offset or int(rows) != int(columns):
            g.unsupported("a diagonal of varying length")
        length = rows
    steps = g.op("Range", [g.number(0, _C.int64), g.size(length), g.number(1, _C.int64)], _C.int64, [length])
    ends = [g.op("Add", [steps, g.number(max(n, 0), _C.int64)], _C.int64, [length]) for n in (-offset, offset)]
    index = g.op("Concat", [g.unsqueeze(e, [1]) for e in ends], _C.int64, [length, 2], axis=1)
    taken = g.op("GatherND", [x, index], input.dtype, [length, *(x.shape or [])[2:]])
    return g.transpose(taken, [*range(1, taken.ndim), 0])


@op("unfold")
def unfold(g: Graph, input: Val, dimension: int, size: int, step: int) -> Val:
    axis = axis_of(dimension, input.ndim)
    count = (g.out.shape or [])[axis]
    if g.is_late(count):
        count = ((input.shape or [])[axis] - size) // step + 1
    starts = g.op("Range", [g.number(0, _C.int64), g.size(count * step), g.number(step, _C.int64)], _C.int64, [count])
    inner = g.constant(_C.ops["arange"](size, dtype=_C.int64))
    index = g.op("Add", [g.unsqueeze(starts, [1]), inner], _C.int64, [count, size])
    shape = list(input.shape or [])
    taken = g.op("Gather", [input, index], input.dtype, [*shape[:axis], count, size, *shape[axis + 1 :]], axis=axis)
    order = [i for i in range(taken.ndim) if i != axis + 1]
    return g.transpose(taken, [*order, axis + 1])


@op("as_strided")
def as_strided(g: Graph, input: Val, size: Any, stride: Any, storage_offset: Any = None) -> Val:
    g.static([*size, *stride, *(input.shape or [])], "a size")
    index = _C.ops["arange"](storage_offset or 0, (storage_offset or 0) + 1, 1, dtype=_C.int64).reshape([1] * len(size))
    for axis, (n, s) in enumerate(zip(size, stride)):
        index = index + (_C.ops["arange"](n, dtype=_C.int64) * s).reshape(
            [-1 if i == axis else 1 for i in range(len(size))]
        )
    flat = g.reshape(input, [product(input.shape or [])])
    result = g.op("Gather", [flat, g.constant(index)], input.dtype, list(size), axis=0)
    return result


@op("view_as_complex", "view_as_real", "view.dtype")
def _complex(g: Graph, input: Val, *args: Any) -> None:
    g.unsupported("complex numbers")
