"""Indexing, gathering and scattering, and writes to parts of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._recording._sizes import SymInt
from .._graph import Graph, Val, axis_of, op, product
from .elementwise import operand
from .logic import truth

_END = (1 << 63) - 1
_MASKS = (_C.bool, _C.uint8)


def parts_of(g: Graph, index: Any, ndim: int) -> list[Any]:
    """The parts of an index, one for each dimension and each None."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [_listed(g, p) if isinstance(p, (list, tuple)) else p for p in parts]
    taken = sum(
        p.ndim if _is_mask(p) else 1 for p in parts if p is not None and p is not ... and not isinstance(p, bool)
    )
    full: list[Any] = [slice(None)] * (ndim - taken)
    if any(p is ... for p in parts):
        at = next(i for i, p in enumerate(parts) if p is ...)
        return [*parts[:at], *full, *(p for p in parts[at + 1 :] if p is not ...)]
    return [*parts, *full]


def _listed(g: Graph, part: Any) -> Val:
    """A list in an index as a tensor."""
    if all(isinstance(n, int) and not isinstance(n, bool) for n in part):
        return g.ints(part)
    return g.constant(_C.tensor(part))


def _is_mask(p: Any) -> bool:
    return isinstance(p, Val) and p.dtype in _MASKS


def _is_full(p: Any) -> bool:
    return isinstance(p, slice) and p.start in (None, 0) and p.stop is None and p.step in (None, 1)


def take(g: Graph, x: Val, index: Any) -> Val:
    """The elements at an index of any kind."""
    parts = parts_of(g, index, x.ndim)
    x, tensors = _basic(g, x, parts)
    if not tensors:
        return x
    axes, indices = _vectors(g, tensors)
    if len(axes) == 1:
        shape = list(x.shape or [])
        result = [*shape[: axes[0]], *(indices[0].shape or []), *shape[axes[0] + 1 :]]
        return g.op("Gather", [x, indices[0]], x.dtype, result, axis=axes[0])
    return _gather_several(g, x, axes, indices)


def _basic(g: Graph, x: Val, parts: list[Any]) -> tuple[Val, list[tuple[int, Val]]]:
    """Applies ints, slices and None; the tensors of the index with the dimensions that they are for."""
    slices: list[tuple[Any, Any, int, int]] = []
    numbers: list[tuple[int, Any]] = []
    axis = 0
    for p in parts:
        if p is None:
            continue
        if isinstance(p, slice) and not _is_full(p):
            slices.append((p.start or 0, _END if p.stop is None else p.stop, axis, p.step or 1))
        elif isinstance(p, int):
            numbers.append((axis, p))
        axis += p.ndim if _is_mask(p) else 1
    shape = list(x.shape or [])
    if slices:
        x = g.op("Slice", [x, *(g.ints(list(v)) for v in zip(*slices))], x.dtype)
        for start, stop, at, step in slices:
            shape[at] = sliced(shape[at], start, stop, step)
        x.shape = shape
    for at, n in reversed(numbers):
        x = g.op("Gather", [x, g.size(n)], x.dtype, [s for i, s in enumerate(x.shape or []) if i != at], axis=at)
    new, tensors, axis = [], [], 0
    for p in parts:
        if isinstance(p, int):
            continue
        if p is None:
            new.append(axis)
        elif isinstance(p, Val):
            tensors.append((axis, p))
        axis += p.ndim if _is_mask(p) else 1
    return g.unsqueeze(x, new), tensors


def sliced(size: Any, start: Any, stop: Any, step: Any) -> Any:
    """The size of a slice, where it can be said; else the size as it was."""
    if isinstance(start, Val) or isinstance(stop, Val) or isinstance(step, Val):
        return -1
    if isinstance(size, SymInt) or isinstance(start, SymInt) or isinstance(stop, SymInt):
        if start == 0 and stop == _END and step == 1:
            return size
        if isinstance(size, SymInt) and type(start) is int and start >= 0 and stop == _END and step == 1:
            return size - start
        if type(start) is int and start == 0 and isinstance(stop, SymInt) and step == 1:
            return stop
        return stop - start if isinstance(stop, SymInt) and step == 1 else size
    return len(range(*slice(start, stop, step).indices(size)))


def _vectors(g: Graph, tensors: list[tuple[int, Val]]) -> tuple[list[int], list[Val]]:
    """Index tensors of int64, masks as the places where they are true."""
    axes, indices = [], []
    for axis, t in tensors:
        if not _is_mask(t):
            axes.append(axis)
            indices.append(g.cast(t, _C.int64))
            continue
        found = g.op("NonZero", [truth(g, t)], _C.int64)
        for i in range(t.ndim):
            axes.append(axis + i)
            indices.append(g.op("Gather", [found, g.number(i, _C.int64)], _C.int64, [-1], axis=0))
    return axes, indices


def _gather_several(g: Graph, x: Val, axes: list[int], indices: list[Val]) -> Val:
    ndim = max(i.ndim for i in indices)
    zero = g.number(0, _C.int64)
    same = []
    for i in indices:
        for other in indices:
            if other is not i:
                i = g.op("Add", [i, g.op("Mul", [other, zero], _C.int64, other.shape)], _C.int64, [-1] * ndim)
        same.append(g.unsqueeze(i, [ndim]))
    stacked = g.op("Concat", same, _C.int64, [-1] * ndim + [len(axes)], axis=ndim)
    rest = [a for a in range(x.ndim) if a not in axes]
    front = g.transpose(x, [*axes, *rest])
    taken = g.op("GatherND", [front, stacked], x.dtype, [-1] * ndim + [(x.shape or [])[a] for a in rest])
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] == 0:
        return taken
    first = axes[0]
    order = [*range(ndim, ndim + first), *range(ndim), *range(ndim + first, taken.ndim)]
    return g.transpose(taken, order)


@op("__getitem__")
def getitem(g: Graph, input: Val, index: Any) -> Val:
    return take(g, input, index)


# --- writes


def positions(g: Graph, x: Val) -> Val:
    """The number of each element, in the shape of a value."""
    total = product(x.shape or [])
    key = ("positions", x.name)
    if key not in g.constants:
        flat = g.op("Range", [g.number(0, _C.int64), g.size(total), g.number(1, _C.int64)], _C.int64, [total])
        g.constants[key] = g.reshape(flat, x.shape or [])
    return g.constants[key]


def put(g: Graph, x: Val, where: Val, value: Any, reduction: str | None = None) -> Val:
    """`x` with `value`, which is broadcast, at the elements of these numbers."""
    if reduction:
        g.require(16)
    kind = x.dtype
    v = operand(g, value, kind)
    v = g.op("Expand", [v, g.op("Shape", [where], _C.int64)], kind)
    compute = _C.int32 if kind == _C.bool else kind
    parts = [g.reshape(g.cast(x, compute), [-1]), g.reshape(where, [-1]), g.reshape(g.cast(v, compute), [-1])]
    flat = g.op("ScatterElements", parts, compute, axis=0, reduction=reduction)
    return g.cast(g.reshape(flat, x.shape or []), kind)


@op("__setitem__")
def setitem(g: Graph, input: Val, index: Any, value: Any) -> Val:
    parts = parts_of(g, index, input.ndim)
    if all(p is None or _is_full(p) for p in parts):
        return g.op("Expand", [operand(g, value, input.dtype), g.shape(input)], input.dtype, input.shape)
    masked = _masked(g, input, parts, value)
    if masked is None:
        masked = _joined(g, input, parts, value)
    return masked if masked is not None else put(g, input, take(g, positions(g, input), tuple(parts)), value)


def _masked(g: Graph, x: Val, parts: list[Any], value: Any) -> Val | None:
    """The write as a choice, where the only index is a mask of the first dimensions."""
    if not _is_mask(parts[0]) or not all(_is_full(p) for p in parts[1:]):
        return None
    mask = parts[0]
    rest = x.ndim - mask.ndim
    if isinstance(value, Val) and (value.ndim > rest and any(type(n) is not int or n != 1 for n in value.shape or [])):
        return None
    wide = g.unsqueeze(truth(g, mask), list(range(mask.ndim, x.ndim)))
    return g.op("Where", [wide, operand(g, value, x.dtype), x], x.dtype, x.shape)


def _joined(g: Graph, x: Val, parts: list[Any], value: Any) -> Val | None:
    """The write as what is before, the value and what is after, where one dimension is indexed by an int or a range."""
    if any(p is None or isinstance(p, Val) for p in parts):
        return None
    at = [i for i, p in enumerate(parts) if not _is_full(p)]
    if len(at) != 1:
        return None
    axis, p = at[0], parts[at[0]]
    size = (x.shape or [])[axis]
    is_one = isinstance(p, int)
    start, stop, step = (p, p + 1, 1) if is_one else (p.start or 0, p.stop, p.step or 1)
    if step != 1 or any(type(n) is not int for n in (start, size)) or stop is not None and type(stop) is not int:
        return None
    if is_one:
        start, stop = start % size, start % size + 1
    else:
        start, stop, _ = slice(start, stop).indices(size)
    v = operand(g, value, x.dtype)
    v = g.unsqueeze(v, [v.ndim - (x.ndim - axis - 1)]) if is_one and v.ndim > x.ndim - axis - 1 else v
    if stop <= start:
        return x
    v = g.expand(v, [stop - start if i == axis else n for i, n in enumerate(x.shape or [])])
    before = [g.slice(x, axis, 0, start)] if start else []
    after = [g.slice(x, axis, stop, _END)] if stop < size else []
    joined = [*before, v, *after]
    return g.op("Concat", joined, x.dtype, x.shape, axis=axis) if len(joined) > 1 else v


@op("index_put", "_unsafe_index_put")
def index_put(g: Graph, input: Val, indices: Sequence[Any], values: Val, accumulate: bool = False) -> Val:
    index = tuple(slice(None) if i is None else i for i in indices)
    return put(g, input, take(g, positions(g, input), index), values, "add" if accumulate else None)


def write_view(g: Graph, root: Val, taken: Callable[[Val], Val], value: Val) -> Val:
    """`root` with `value` in the place of its view, which `taken` gives of any value of that shape."""
    return put(g, root, taken(positions(g, root)), value)


@op("select_scatter", "slice_scatter", "diagonal_scatter")
def view_scatter(g: Graph, input: Val, src: Val, *args: Any, **kwargs: Any) -> Val:
    name = g.key.removesuffix("_scatter")
    if name == "slice":
        given = dict(zip(("dim", "start", "end", "step"), args), **kwargs)
        axis = axis_of(given.get("dim", 0), input.ndim)
        part = slice(given.get("start"), given.get("end"), given.get("step"))
        where = take(g, positions(g, input), (*[slice(None)] * axis, part))
    else:
        where = g.call(name, positions(g, input), *args, **kwargs)
    return put(g, input, where, src)


# --- along one dimension


@op("index_select")
def index_select(g: Graph, input: Val, dim: int, index: Val) -> Val:
    x = g.unsqueeze(index, [0]) if index.ndim == 0 else index
    axis = axis_of(dim, input.ndim)
    return g.op("Gather", [input, x], input.dtype, g.out.shape, axis=axis)


@op("embedding")
def embedding(g: Graph, input: Val, weight: Val, *args: Any, **kwargs: Any) -> Val:
    return g.op("Gather", [weight, input], weight.dtype, [*(input.shape or []), *(weight.shape or [])[1:]], axis=0)


@op("torch_embedding")
def torch_embedding(g: Graph, weight: Val, indices: Val, *args: Any, **kwargs: Any) -> Val:
    return embedding(g, indices, weight)


@op("embedding_bag")
def embedding_bag(g: Graph, input: Val, weight: Val, offsets: Any = None, *args: Any, **kwargs: Any) -> Val:
    given = dict(zip(("max_norm", "norm_type", "scale_grad_by_freq", "mode"), args), **kwargs)
    if (
        offsets is not None
        or given.get("per_sample_weights") is not None
        or given.get("padding_idx") is not None
        or input.ndim != 2
    ):
        g.unsupported("offsets, weights or a padding index")
    kinds = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax"}
    return g.reduce(kinds[given.get("mode", "mean")], embedding(g, input, weight), [1], False)


@op("gather")
def gather(g: Graph, input: Val, dim: int, index: Val, *, sparse_grad: bool = False) -> Val:
    if input.ndim == 0:
        return g.expand(input, index.shape or [])
    axis = axis_of(dim, input.ndim)
    return g.op("GatherElements", [input, g.cast(index, _C.int64)], input.dtype, index.shape, axis=axis)


@op("take_along_dim")
def take_along_dim(g: Graph, input: Val, indices: Val, dim: Any = None) -> Val:
    if dim is None:
        return gather(g, g.reshape(input, [-1]), 0, g.reshape(indices, [-1]))
    axis = axis_of(dim, input.ndim)
    both = list(zip(input.shape or [], indices.shape or []))
    if all(i == axis or g.in_runs(a) == g.in_runs(b) for i, (a, b) in enumerate(both)):
        return gather(g, input, dim, indices)
    g.static([n for pair in both for n in pair], "an index that may be broadcast")
    x = g.expand(input, [a if i == axis else max(a, b) for i, (a, b) in enumerate(both)])
    index = g.expand(indices, [b if i == axis else max(a, b) for i, (a, b) in enumerate(both)])
    return gather(g, x, dim, index)


_REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min", None: None}


@op("scatter", "scatter_add", "scatter_reduce")
def scatter(g: Graph, input: Val, dim: int, index: Val, *args: Any, **kwargs: Any) -> Val:
    given = dict(zip(("src", "reduce"), args), **kwargs)
    reduction = _REDUCTIONS.get("add" if g.key.startswith("scatter_add") else given.get("reduce"), "mean")
    if reduction == "mean" or not given.get("include_self", True):
        g.unsupported("reduce='mean' or include_self=False")
    if reduction:
        g.require(18 if reduction in ("max", "min") else 16)
    src = given.get("src", given.get("value"))
    v = operand(g, src, input.dtype)
    if not isinstance(src, Val) or v.ndim == 0 and index.ndim:
        v = g.expand(v, index.shape or [])
    elif v.shape != index.shape:
        for axis, (n, m) in enumerate(zip(v.shape or [], index.shape or [])):
            v = v if g.in_runs(n) == g.in_runs(m) else g.slice(v, axis, 0, m)
    axis = axis_of(dim, input.ndim)
    return g.op(
        "ScatterElements", [input, g.cast(index, _C.int64), v], input.dtype, input.shape, axis=axis, reduction=reduction
    )


def _along(g: Graph, x: Val, dim: int, index: Val) -> Val:
    """The numbers of the elements that an index takes along a dimension."""
    return index_select(g, positions(g, x), dim, index)


@op("index_add")
def index_add(g: Graph, input: Val, dim: int, index: Val, source: Val, *, alpha: Any = 1) -> Val:
    if alpha != 1:
        source = g.op("Mul", [source, g.number(alpha, source.dtype)], source.dtype, source.shape)
    return put(g, input, _along(g, input, dim, index), source, "add")


@op("index_copy")
def index_copy(g: Graph, input: Val, dim: int, index: Val, source: Val) -> Val:
    return put(g, input, _along(g, input, dim, index), source)


@op("index_fill")
def index_fill(g: Graph, input: Val, dim: int, index: Val, value: Any) -> Val:
    return put(g, input, _along(g, input, dim, index), value)


@op("take")
def take_flat(g: Graph, input: Val, index: Val) -> Val:
    return g.op("Gather", [g.reshape(input, [-1]), index], input.dtype, index.shape, axis=0)


# --- by elements


@op("nonzero", "argwhere")
def nonzero(g: Graph, input: Val, *, as_tuple: bool = False) -> Any:
    found = g.op("NonZero", [truth(g, input)], _C.int64, [input.ndim, -1])
    if as_tuple:
        return [g.op("Gather", [found, g.number(i, _C.int64)], _C.int64, [-1], axis=0) for i in range(input.ndim)]
    return g.transpose(found, [1, 0])


@op("masked_select")
def masked_select(g: Graph, input: Val, mask: Val) -> Val:
    x = g.op("Expand", [input, g.shape(mask)], input.dtype, [-1] * max(input.ndim, mask.ndim))
    m = g.op("Expand", [truth(g, mask), g.shape(x)], _C.bool, x.shape)
    return take(g, x, m)


@op("masked_scatter")
def masked_scatter(g: Graph, input: Val, mask: Val, source: Val) -> Val:
    m = g.op("Expand", [truth(g, mask), g.shape(input)], _C.bool, input.shape)
    where = g.transpose(g.op("NonZero", [m], _C.int64, [input.ndim, -1]), [1, 0])
    count = g.op("Gather", [g.op("Shape", [where], _C.int64), g.ints([0])], _C.int64, [1], axis=0)
    values = g.op("Slice", [g.reshape(source, [-1]), g.ints([0]), count, g.ints([0])], source.dtype)
    return g.op("ScatterND", [input, where, values], input.dtype, input.shape)


@op("_slice")
def _slice(g: Graph, input: Val, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Val:
    axis = axis_of(dim, input.ndim)
    whole: list[Any] = [slice(None)] * axis
    return take(g, input, (*whole, slice(start, end, step)))


@op("index")
def _index(g: Graph, input: Val, indices: Sequence[Val | None]) -> Val:
    return take(g, input, tuple(slice(None) if i is None else i for i in indices))
