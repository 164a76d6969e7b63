"""New tensors whose sizes or values vary; those that do not are constants and never come here. Random numbers."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._graph import TYPES, Graph, Val, op
from .elementwise import operand
from .view import sizes


def filled(g: Graph, value: Any, shape: Any) -> Val:
    """A tensor of one value in the wanted dtype."""
    return g.expand(operand(g, value, g.out.dtype), list(shape))


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return sizes(args) if args else list(kwargs.get("size", ()))


@op("zeros", "empty")
def zeros(g: Graph, *size: Any, **kwargs: Any) -> Val:
    return filled(g, 0, _given(size, kwargs))


@op("ones")
def ones(g: Graph, *size: Any, **kwargs: Any) -> Val:
    return filled(g, 1, _given(size, kwargs))


@op("full")
def full(g: Graph, size: Any, fill_value: Any, **kwargs: Any) -> Val:
    return filled(g, fill_value, size)


@op("new_zeros", "new_empty")
def new_zeros(g: Graph, input: Val, *size: Any, **kwargs: Any) -> Val:
    return filled(g, 0, _given(size, kwargs))


@op("new_ones")
def new_ones(g: Graph, input: Val, *size: Any, **kwargs: Any) -> Val:
    return filled(g, 1, _given(size, kwargs))


@op("new_full")
def new_full(g: Graph, input: Val, size: Any, fill_value: Any, **kwargs: Any) -> Val:
    return filled(g, fill_value, size)


@op("zeros_like", "empty_like")
def zeros_like(g: Graph, input: Val, **kwargs: Any) -> Val:
    return filled(g, 0, input.shape)


@op("ones_like")
def ones_like(g: Graph, input: Val, **kwargs: Any) -> Val:
    return filled(g, 1, input.shape)


@op("full_like")
def full_like(g: Graph, input: Val, fill_value: Any, **kwargs: Any) -> Val:
    return filled(g, fill_value, input.shape)


@op("arange")
def arange(g: Graph, start: Any = 0, end: Any = None, step: Any = 1, **kwargs: Any) -> Val:
    if end is None:
        start, end = 0, start
    kind = g.out.dtype
    compute = (
        kind
        if kind in (_C.int64, _C.int32, _C.float32, _C.float64)
        else _C.float32
        if kind.is_floating_point
        else _C.int64
    )
    if kind.is_floating_point and all(isinstance(v, int) for v in (start, end, step)):
        compute = _C.int64
    ends = [operand(g, v, compute) for v in (start, end, step)]
    flat = [g.squeeze(v, list(range(v.ndim))) for v in ends]
    return g.cast(g.op("Range", flat, compute, g.out.shape), kind)


@op("linspace")
def linspace(g: Graph, start: Any, end: Any, steps: Any, **kwargs: Any) -> Val:
    kind = g.out.dtype
    count = g.op("Range", [g.number(0, _C.int64), g.size(steps), g.number(1, _C.int64)], _C.int64, [steps])
    a, b = operand(g, start, kind), operand(g, end, kind)
    last = g.cast(g.op("Max", [g.size(steps - 1), g.number(1, _C.int64)], _C.int64, []), kind)
    step = g.op("Div", [g.op("Sub", [b, a], kind), last], kind, [])
    return g.op("Add", [a, g.op("Mul", [g.cast(count, kind), step], kind)], kind, [steps])


@op("eye")
def eye(g: Graph, n: Any, m: Any = None, **kwargs: Any) -> Val:
    ranges = [
        g.op("Range", [g.number(0, _C.int64), g.size(k), g.number(1, _C.int64)], _C.int64, [k]) for k in (n, m or n)
    ]
    same = g.op("Equal", [g.unsqueeze(ranges[0], [1]), ranges[1]], _C.bool, [n, m or n])
    return g.cast(same, g.out.dtype)


@op("tensor", "as_tensor", "scalar_tensor", "new_tensor", "asarray")
def tensor(g: Graph, *args: Any, **kwargs: Any) -> Val:
    data = kwargs.get("data", args[-1] if g.key == "new_tensor" or len(args) == 1 else args[0])
    return _nested(g, data)


def _nested(g: Graph, data: Any) -> Val:
    if not isinstance(data, (list, tuple)):
        return operand(g, data, g.out.dtype)
    parts = [g.unsqueeze(_nested(g, d), [0]) for d in data]
    if not parts:
        return g.constant(_C.ops["zeros"]([0], dtype=g.out.dtype))
    shape = [len(parts), *(parts[0].shape or [])[1:]]
    return g.op("Concat", parts, g.out.dtype, shape, axis=0) if len(parts) > 1 else parts[0]


# --- random numbers


def _like(g: Graph, kind: str, shape: Any, **attributes: Any) -> Val:
    compute = g.out.dtype if g.out.dtype in (_C.float32, _C.float64, _C.float16) else _C.float32
    if all(type(n) is int for n in shape) and shape:
        x = g.op(kind, [], compute, list(shape), dtype_=TYPES[compute], shape_=[int(n) for n in shape], **attributes)
    else:
        model = g.expand(g.number(0, compute), list(shape))
        x = g.op(f"{kind}Like", [model], compute, list(shape), dtype_=TYPES[compute], **attributes)
    return g.cast(x, g.out.dtype)


@op("rand")
def rand(g: Graph, *size: Any, **kwargs: Any) -> Val:
    return _like(g, "RandomUniform", _given(size, kwargs))


@op("randn")
def randn(g: Graph, *size: Any, **kwargs: Any) -> Val:
    return _like(g, "RandomNormal", _given(size, kwargs))


@op("rand_like")
def rand_like(g: Graph, input: Val, **kwargs: Any) -> Val:
    return _like(g, "RandomUniform", input.shape)


@op("randn_like")
def randn_like(g: Graph, input: Val, **kwargs: Any) -> Val:
    return _like(g, "RandomNormal", input.shape)


@op("normal")
def normal(g: Graph, mean: Any, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Val:
    if not isinstance(mean, Val) and not isinstance(std, Val):
        return _like(g, "RandomNormal", size, mean=float(mean), scale=float(std))
    kind = g.out.dtype
    noise = _like(g, "RandomNormal", (mean if isinstance(mean, Val) else std).shape)
    return g.op("Add", [operand(g, mean, kind), g.op("Mul", [noise, operand(g, std, kind)], kind)], kind, g.out.shape)


@op("normal_")
def normal_(g: Graph, input: Val, mean: float = 0.0, std: float = 1.0, **kwargs: Any) -> Val:
    return _like(g, "RandomNormal", input.shape, mean=float(mean), scale=float(std))


@op("uniform_")
def uniform_(g: Graph, input: Val, a: float = 0.0, b: float = 1.0, **kwargs: Any) -> Val:
    low, high = float(kwargs.get("from", a)), float(kwargs.get("to", b))
    return _like(g, "RandomUniform", input.shape, low=low, high=high)


@op("randint", "randint_like")
def randint(g: Graph, *args: Any, **kwargs: Any) -> Val:
    given = list(args[1:] if g.key == "randint_like" else args)
    bounds = [v for v in given if isinstance(v, int)]
    low, high = (
        (0, bounds[0])
        if len(bounds) == 1
        else (bounds[0], bounds[1])
        if bounds
        else (kwargs.get("low", 0), kwargs["high"])
    )
    u = _like_float(
        g, args[0].shape if g.key == "randint_like" else kwargs.get("size", given[-1]), float(low), float(high)
    )
    return g.cast(g.same("Floor", u), g.out.dtype)


def _like_float(g: Graph, shape: Any, low: float, high: float) -> Val:
    wanted, g.outs = g.outs, [Val("", _C.float32, list(shape))]
    u = _like(g, "RandomUniform", list(shape), low=low, high=math.nextafter(high, low))
    g.outs = wanted
    return u


@op("bernoulli")
def bernoulli(g: Graph, input: Val, p: Any = None, **kwargs: Any) -> Val:
    probabilities = input if p is None else g.expand(operand(g, p, _C.float32), input.shape or [])
    return g.op("Bernoulli", [probabilities], g.out.dtype, input.shape, dtype_=TYPES[g.out.dtype])
