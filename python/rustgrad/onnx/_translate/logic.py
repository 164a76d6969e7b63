"""Comparisons, logic, choices, and what is said of the values of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _C, finfo
from .._graph import HALVES, SMALL, Graph, Val, op, table
from .elementwise import binary, floor_divide, operand, promoted

_BITS = {"and": "And", "or": "Or", "xor": "Xor"}

_COMPARE = {
    "Equal": "eq __eq__",
    "Greater": "gt greater __gt__",
    "Less": "lt less __lt__",
    "GreaterOrEqual": "ge greater_equal __ge__",
    "LessOrEqual": "le less_equal __le__",
}


def compare(g: Graph, kind: str, a: Any, b: Any) -> Val:
    """A comparison, in the dtype to which both promote."""
    both = promoted(g, a, b) if isinstance(a, Val) else promoted(g, b, a)
    if both == _C.bool and kind != "Equal" or both in SMALL:
        both = _C.int32
    shape = g.out.shape if g.out.dtype == _C.bool else None
    return g.op(kind, [operand(g, a, both), operand(g, b, both)], _C.bool, shape)


def _comparison(kind: str) -> Callable[..., Val]:
    return lambda g, input, other: compare(g, kind, input, other)


for _kind, _names in _COMPARE.items():
    op(*_names.split())(_comparison(_kind))


@op("ne", "not_equal", "__ne__")
def ne(g: Graph, input: Any, other: Any) -> Val:
    equal = compare(g, "Equal", input, other)
    return g.op("Not", [equal], _C.bool, equal.shape)


def truth(g: Graph, x: Any) -> Val:
    """Which elements are not zero."""
    return operand(g, x, _C.bool)


def _logic(kind: str) -> Callable[..., Val]:
    def translate(g: Graph, input: Any, other: Any) -> Val:
        return g.cast(g.op(kind, [truth(g, input), truth(g, other)], _C.bool, g.out.shape), g.out.dtype)

    return translate


def _bitwise(kind: str) -> Callable[..., Val]:
    logic = _logic(kind)

    def translate(g: Graph, input: Any, other: Any) -> Val:
        if g.out.dtype == _C.bool:
            return logic(g, input, other)
        g.require(18)
        kinds = [operand(g, v, g.out.dtype) for v in (input, other)]
        return g.op(f"Bitwise{kind}", kinds, g.out.dtype, g.out.shape)

    return translate


for _name, _kind in _BITS.items():
    op(f"logical_{_name}")(_logic(_kind))
    op(f"bitwise_{_name}", f"__{_name}__", f"__r{_name}__", f"__i{_name}__")(_bitwise(_kind))


@op("logical_not")
def logical_not(g: Graph, input: Val) -> Val:
    return g.op("Not", [truth(g, input)], _C.bool, g.out.shape)


@op("bitwise_not", "__invert__")
def bitwise_not(g: Graph, input: Val) -> Val:
    if input.dtype == _C.bool:
        return logical_not(g, input)
    g.require(18)
    return g.same("BitwiseNot", input)


@op("__lshift__", "bitwise_left_shift", "__ilshift__")
def left_shift(g: Graph, input: Any, other: Any) -> Val:
    return binary(g, "Mul", input, _power_of_two(g, other))


@op("__rshift__", "bitwise_right_shift", "__irshift__")
def right_shift(g: Graph, input: Any, other: Any) -> Val:
    return floor_divide(g, input, _power_of_two(g, other))


def _power_of_two(g: Graph, n: Any) -> Any:
    if isinstance(n, Val):
        return g.op("Pow", [g.number(2, _C.int64), g.cast(n, _C.int64)], _C.int64)
    return 1 << n


@op("where_self")
def where_self(g: Graph, input: Val, condition: Val, other: Any) -> Val:
    return _where(g, condition, input, other)


@op("where")
def where(g: Graph, condition: Val, *choices: Any, **kwargs: Any) -> Any:
    if not choices and not kwargs:
        return table["nonzero"](g, condition, as_tuple=True)
    return _where(g, condition, *choices, **kwargs)


def _where(g: Graph, condition: Val, input: Any, other: Any) -> Val:
    kind = g.out.dtype
    choice = [truth(g, condition), operand(g, input, kind), operand(g, other, kind)]
    return g.op("Where", choice, kind, g.out.shape)


@op("masked_fill")
def masked_fill(g: Graph, input: Val, mask: Val, value: Any) -> Val:
    return _where(g, mask, value, input)


@op("isnan")
def isnan(g: Graph, input: Val) -> Val:
    if not input.is_float:
        return g.op("Expand", [g.number(False, _C.bool), g.shape(input)], _C.bool, input.shape)
    return g.op("IsNaN", [input], _C.bool, input.shape)


@op("isinf")
def isinf(g: Graph, input: Val) -> Val:
    wide = g.cast(input, _C.float32) if input.dtype in HALVES else input
    return g.op("IsInf", [wide], _C.bool, input.shape)


@op("isfinite")
def isfinite(g: Graph, input: Val) -> Val:
    either = g.op("Or", [isnan(g, input), isinf(g, input)], _C.bool, input.shape)
    return g.op("Not", [either], _C.bool, input.shape)


@op("isposinf", "isneginf")
def _signed_infinity(g: Graph, input: Val) -> Val:
    up = int(g.key == "isposinf")
    return g.op("IsInf", [input], _C.bool, input.shape, detect_positive=up, detect_negative=1 - up)


@op("nan_to_num")
def nan_to_num(g: Graph, input: Val, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Val:
    kind = input.dtype
    if not input.is_float:
        return input
    limits = finfo(kind)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    x = g.op("Where", [isnan(g, input), g.number(nan or 0.0, kind), input], kind, input.shape)
    for value, up in ((high, 1), (low, 0)):
        at = g.op("IsInf", [x], _C.bool, x.shape, detect_positive=up, detect_negative=1 - up)
        x = g.op("Where", [at, g.number(value, kind), x], kind, input.shape)
    return x
