"""Functions that are written with others."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._graph import HALVES, Graph, Val, axis_of, op, product
from .elementwise import binary, operand
from .logic import compare


def _signs(g: Graph, x: Val) -> Val:
    """Which elements are negative, minus zero among them."""
    zero = g.number(0, x.dtype)
    below = g.op("Less", [x, zero], _C.bool, x.shape)
    inverse = g.op("Less", [g.same("Reciprocal", x), zero], _C.bool, x.shape)
    return g.op("Or", [below, g.op("And", [g.op("Equal", [x, zero], _C.bool), inverse], _C.bool)], _C.bool, x.shape)


@op("signbit")
def signbit(g: Graph, input: Val) -> Val:
    return _signs(g, input) if input.is_float else g.op("Less", [input, g.number(0, input.dtype)], _C.bool, input.shape)


@op("copysign")
def copysign(g: Graph, input: Any, other: Any) -> Val:
    kind = g.out.dtype
    size = g.same("Abs", operand(g, input, kind))
    return g.op("Where", [_signs(g, operand(g, other, kind)), g.same("Neg", size), size], kind, g.out.shape)


@op("sinc", "special.sinc")
def sinc(g: Graph, input: Val) -> Val:
    kind, shape = g.out.dtype, g.out.shape
    x = g.op("Mul", [g.cast(input, kind), g.number(math.pi, kind)], kind, shape)
    at_zero = g.op("Equal", [x, g.number(0, kind)], _C.bool, shape)
    safe = g.op("Where", [at_zero, g.number(1, kind), x], kind, shape)
    ratio = g.op("Div", [g.same("Sin", safe), safe], kind, shape)
    return g.op("Where", [at_zero, g.number(1, kind), ratio], kind, shape)


@op("xlogy", "special.xlogy")
def xlogy(g: Graph, input: Any, other: Any) -> Val:
    kind, shape = g.out.dtype, g.out.shape
    x = operand(g, input, kind)
    value = g.op("Mul", [x, g.same("Log", operand(g, other, kind))], kind, shape)
    return g.op("Where", [g.op("Equal", [x, g.number(0, kind)], _C.bool), g.number(0, kind), value], kind, shape)


@op("logaddexp2")
def logaddexp2(g: Graph, input: Val, other: Val) -> Val:
    two = g.number(math.log(2), g.out.dtype)
    parts = [g.op("Mul", [v, two], g.out.dtype, v.shape) for v in (input, other)]
    return g.op("Div", [g.call("logaddexp", *parts), two], g.out.dtype, g.out.shape)


@op("isclose")
def isclose(g: Graph, input: Val, other: Val, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Val:
    kind = input.dtype
    apart = g.same("Abs", g.op("Sub", [input, other], kind, g.out.shape))
    scaled = g.op("Mul", [g.same("Abs", other), g.number(rtol, kind)], kind, other.shape)
    near = g.op("LessOrEqual", [apart, g.op("Add", [scaled, g.number(atol, kind)], kind)], _C.bool, g.out.shape)
    equal = g.op("Or", [near, compare(g, "Equal", input, other)], _C.bool, g.out.shape)
    if not equal_nan:
        return equal
    both = g.op("And", [g.call("isnan", input), g.call("isnan", other)], _C.bool, g.out.shape)
    return g.op("Or", [equal, both], _C.bool, g.out.shape)


@op("isin")
def isin(g: Graph, elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Val:
    kind = (elements if isinstance(elements, Val) else test_elements).dtype
    x, tested = operand(g, elements, kind), operand(g, test_elements, kind)
    flat = g.reshape(tested, [-1])
    same = g.op("Equal", [g.unsqueeze(x, [x.ndim]), flat], _C.bool, [*(x.shape or []), -1])
    found = g.cast(g.reduce("ReduceMax", g.cast(same, _C.int32), [x.ndim], False), _C.bool)
    return g.op("Not", [found], _C.bool, g.out.shape) if invert else found


@op("atleast_1d", "atleast_2d", "atleast_3d")
def atleast(g: Graph, *tensors: Any) -> Any:
    least = int(g.key[8])
    every = list(tensors[0]) if isinstance(tensors[0], (list, tuple)) else list(tensors)
    results = []
    for x in every:
        while x.ndim < least:
            x = g.unsqueeze(x, [x.ndim if x.ndim == 2 or x.ndim == 0 else 0])
        results.append(x)
    return results


@op("kron")
def kron(g: Graph, input: Val, other: Val) -> Val:
    n = max(input.ndim, other.ndim)
    a, b = g.unsqueeze(input, list(range(n - input.ndim))), g.unsqueeze(other, list(range(n - other.ndim)))
    left = g.unsqueeze(a, [2 * i + 1 for i in range(n)])
    right = g.unsqueeze(b, [2 * i for i in range(n)])
    shape = [product([x, y]) for x, y in zip(a.shape or [], b.shape or [])]
    return g.reshape(g.op("Mul", [left, right], g.out.dtype), shape)


@op("cross", "linalg.cross")
def cross(g: Graph, input: Val, other: Val, dim: Any = None) -> Val:
    shape = input.shape or []
    if dim is None:
        dim = -1 if g.key.startswith("linalg") else next(i for i, n in enumerate(shape) if type(n) is int and n == 3)
    axis = axis_of(dim, input.ndim)
    taken = lambda x, order: g.op("Gather", [x, g.ints(order)], x.dtype, x.shape, axis=axis)  # noqa: E731
    first = g.op("Mul", [taken(input, [1, 2, 0]), taken(other, [2, 0, 1])], g.out.dtype, g.out.shape)
    second = g.op("Mul", [taken(input, [2, 0, 1]), taken(other, [1, 2, 0])], g.out.dtype, g.out.shape)
    return g.op("Sub", [first, second], g.out.dtype, g.out.shape)


@op("linalg.matmul")
def linalg_matmul(g: Graph, input: Val, other: Val) -> Val:
    return g.call("matmul", input, other)


@op("linalg.vecdot", "vecdot")
def vecdot(g: Graph, x: Val, y: Val, *, dim: int = -1) -> Val:
    kind = g.out.dtype
    both = g.op("Mul", [g.cast(x, kind), g.cast(y, kind)], kind, x.shape)
    return g.reduce("ReduceSum", both, [axis_of(dim, x.ndim)], False)


@op("multinomial")
def multinomial(g: Graph, input: Val, num_samples: int, replacement: bool = False, **kwargs: Any) -> Val:
    if not replacement and num_samples != 1:
        g.unsupported("sampling without replacement")
    x = g.cast(input, _C.float32) if input.dtype in HALVES else input
    x = g.unsqueeze(x, [0]) if input.ndim == 1 else x
    drawn = g.op(
        "Multinomial",
        [g.same("Log", x)],
        _C.int32,
        [*(x.shape or [])[:1], num_samples],
        dtype_=6,
        sample_size=num_samples,
    )
    drawn = g.cast(drawn, _C.int64)
    return g.squeeze(drawn, [0]) if input.ndim == 1 else drawn


@op("fill_diagonal_")
def fill_diagonal(g: Graph, input: Val, fill_value: Any, wrap: bool = False) -> Val:
    if input.ndim != 2 or wrap:
        g.unsupported("more than two dimensions, or wrap")
    lines = [
        g.op("Range", [g.number(0, _C.int64), g.size(n), g.number(1, _C.int64)], _C.int64, [n])
        for n in input.shape or []
    ]
    same = g.op("Equal", [g.unsqueeze(lines[0], [1]), lines[1]], _C.bool, input.shape)
    return g.op("Where", [same, g.number(fill_value, input.dtype), input], input.dtype, input.shape)


@op("ldexp")
def ldexp(g: Graph, input: Val, other: Val) -> Val:
    return binary(
        g, "Mul", input, g.op("Pow", [g.number(2, g.out.dtype), g.cast(other, g.out.dtype)], g.out.dtype, other.shape)
    )
