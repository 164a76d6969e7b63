"""Arithmetic, casts and functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import _C
from .._graph import SMALL, WHOLE, Graph, Val, op


def operand(g: Graph, x: Any, kind: Any) -> Val:
    """A tensor or a number as a value of a dtype."""
    return g.cast(x, kind) if isinstance(x, Val) else g.number(x, kind)


def promoted(g: Graph, *operands: Any) -> Any:
    """The dtype to which tensors and numbers promote."""
    meta = [_like(x) for x in operands]
    kind = meta[0]
    result = _C._result_type((kind, meta[1])) if len(meta) > 1 else kind.dtype
    return result


def _like(x: Any) -> Any:
    if not isinstance(x, Val):
        return int(x) if isinstance(x, int) and not isinstance(x, bool) else x
    rank = len(x.shape) if x.shape is not None else 1
    return _C.ops["empty"]([1] * rank, dtype=x.dtype, device="meta")


def binary(g: Graph, kind: str, a: Any, b: Any, compute: Any = None) -> Val:
    """Both operands as the dtype in which the op computes, the node, and its result as the wanted dtype."""
    wanted = g.out.dtype
    compute = compute or wanted
    if compute in SMALL:
        compute = _C.int32
    result = g.op(kind, [operand(g, a, compute), operand(g, b, compute)], compute, g.out.shape)
    return g.cast(result, wanted)


def _scaled(g: Graph, other: Any, alpha: Any) -> Any:
    if alpha == 1:
        return other
    if not isinstance(other, Val):
        return other * alpha
    kind = g.out.dtype
    return g.op("Mul", [g.cast(other, kind), g.number(alpha, kind)], kind, other.shape)


@op("add", "__add__", "__radd__", "__iadd__")
def add(g: Graph, input: Any, other: Any, *, alpha: Any = 1) -> Val:
    if g.out.dtype == _C.bool:
        return binary(g, "Or", input, other)
    return binary(g, "Add", input, _scaled(g, other, alpha))


@op("sub", "subtract", "__sub__", "__isub__")
def sub(g: Graph, input: Any, other: Any, *, alpha: Any = 1) -> Val:
    return binary(g, "Sub", input, _scaled(g, other, alpha))


@op("rsub", "__rsub__")
def rsub(g: Graph, input: Any, other: Any, *, alpha: Any = 1) -> Val:
    return binary(g, "Sub", other, _scaled(g, input, alpha))


@op("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def mul(g: Graph, input: Any, other: Any) -> Val:
    return binary(g, "And" if g.out.dtype == _C.bool else "Mul", input, other)


@op("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def div(g: Graph, input: Any, other: Any, *, rounding_mode: str | None = None) -> Val:
    if rounding_mode == "floor":
        return floor_divide(g, input, other)
    if rounding_mode == "trunc":
        if not g.out.is_float:
            return binary(g, "Div", input, other)
        q = binary(g, "Div", input, other)
        return _truncated(g, q)
    return binary(g, "Div", input, other)


@op("__rtruediv__", "__rdiv__")
def rdiv(g: Graph, input: Any, other: Any) -> Val:
    return binary(g, "Div", other, input)


def _truncated(g: Graph, x: Val) -> Val:
    return g.op("Mul", [g.same("Sign", x), g.same("Floor", g.same("Abs", x))], x.dtype, x.shape)


@op("trunc", "fix")
def trunc(g: Graph, input: Val) -> Val:
    return _truncated(g, input) if input.is_float else input


@op("frac")
def frac(g: Graph, input: Val) -> Val:
    return g.op("Sub", [input, _truncated(g, input)], input.dtype, input.shape)


@op("floor_divide", "__floordiv__", "__ifloordiv__")
def floor_divide(g: Graph, input: Any, other: Any) -> Val:
    kind = g.out.dtype
    if g.out.is_float:
        return g.same("Floor", binary(g, "Div", input, other))
    wide = _C.int64 if kind in WHOLE else kind
    a, b = operand(g, input, wide), operand(g, other, wide)
    rest = g.op("Mod", [a, b], wide, g.out.shape)
    return g.cast(g.op("Div", [g.op("Sub", [a, rest], wide, g.out.shape), b], wide, g.out.shape), kind)


@op("__rfloordiv__")
def rfloor_divide(g: Graph, input: Any, other: Any) -> Val:
    return floor_divide(g, other, input)


@op("remainder", "__mod__", "__imod__")
def remainder(g: Graph, input: Any, other: Any) -> Val:
    kind = g.out.dtype
    if not g.out.is_float:
        return binary(g, "Mod", input, other, _C.int64)
    a, b = operand(g, input, kind), operand(g, other, kind)
    whole = g.same("Floor", g.op("Div", [a, b], kind, g.out.shape))
    return g.op("Sub", [a, g.op("Mul", [whole, b], kind, g.out.shape)], kind, g.out.shape)


@op("__rmod__")
def rremainder(g: Graph, input: Any, other: Any) -> Val:
    return remainder(g, other, input)


@op("fmod")
def fmod(g: Graph, input: Any, other: Any) -> Val:
    kind = g.out.dtype
    compute = _C.int64 if kind in WHOLE else kind
    return g.cast(
        g.op("Mod", [operand(g, input, compute), operand(g, other, compute)], compute, g.out.shape, fmod=1), kind
    )


@op("pow", "float_power", "__pow__", "__ipow__")
def pow(g: Graph, input: Any, exponent: Any) -> Val:
    kind = g.out.dtype
    if not isinstance(exponent, Val) and isinstance(input, Val):
        x = g.cast(input, kind)
        if exponent == 2 and kind not in SMALL:
            return g.op("Mul", [x, x], kind, g.out.shape)
        if exponent == 0.5 and g.out.is_float:
            return g.same("Sqrt", x)
        if exponent == 1:
            return x
    return binary(g, "Pow", input, exponent)


@op("__rpow__")
def rpow(g: Graph, input: Any, other: Any) -> Val:
    return pow(g, other, input)


@op("square")
def square(g: Graph, input: Val) -> Val:
    return pow(g, input, 2)


@op("maximum", "fmax")
def maximum(g: Graph, input: Val, other: Any) -> Val:
    return _extreme(g, "Max", input, other)


@op("minimum", "fmin")
def minimum(g: Graph, input: Val, other: Any) -> Val:
    return _extreme(g, "Min", input, other)


def _extreme(g: Graph, kind: str, a: Any, b: Any) -> Val:
    if g.out.dtype == _C.bool:
        return binary(g, "Or" if kind == "Max" else "And", a, b)
    return binary(g, kind, a, b)


@op("atan2", "arctan2")
def atan2(g: Graph, input: Val, other: Val) -> Val:
    kind = g.out.dtype
    y, x = g.cast(input, kind), g.cast(other, kind)
    shape, zero = g.out.shape, g.number(0, kind)
    base = g.op("Atan", [g.op("Div", [y, x], kind, shape)], kind, shape)
    turn = g.op("Where", [g.op("Less", [y, zero], _C.bool), g.number(-math.pi, kind), g.number(math.pi, kind)], kind)
    left = g.op("Add", [base, turn], kind, shape)
    angle = g.op("Where", [g.op("Less", [x, zero], _C.bool), left, base], kind, shape)
    origin = g.op("And", [g.op("Equal", [x, zero], _C.bool), g.op("Equal", [y, zero], _C.bool)], _C.bool)
    return g.op("Where", [origin, zero, angle], kind, shape)


@op("hypot")
def hypot(g: Graph, input: Val, other: Val) -> Val:
    kind = g.out.dtype
    squares = [g.op("Mul", [g.cast(v, kind)] * 2, kind, v.shape) for v in (input, other)]
    return g.op("Sqrt", [g.op("Add", squares, kind, g.out.shape)], kind, g.out.shape)


@op("lerp")
def lerp(g: Graph, input: Val, end: Val, weight: Any) -> Val:
    kind = g.out.dtype
    step = g.op("Mul", [operand(g, weight, kind), g.op("Sub", [end, input], kind)], kind, g.out.shape)
    return g.op("Add", [input, step], kind, g.out.shape)


@op("addcmul")
def addcmul(g: Graph, input: Val, tensor1: Val, tensor2: Val, *, value: Any = 1) -> Val:
    return _added(g, "Mul", input, tensor1, tensor2, value)


@op("addcdiv")
def addcdiv(g: Graph, input: Val, tensor1: Val, tensor2: Val, *, value: Any = 1) -> Val:
    return _added(g, "Div", input, tensor1, tensor2, value)


def _added(g: Graph, kind: str, input: Val, a: Val, b: Val, value: Any) -> Val:
    result = binary(g, kind, a, b)
    if value != 1:
        result = g.op("Mul", [result, g.number(value, result.dtype)], result.dtype)
    return g.op("Add", [g.cast(input, g.out.dtype), result], g.out.dtype, g.out.shape)


# --- functions of one element

_UNARY = {
    "Abs": "abs absolute __abs__", "Neg": "neg negative __neg__", "Sign": "sign sgn", "Exp": "exp", "Log": "log", "Sqrt": "sqrt",
    "Reciprocal": "reciprocal", "Floor": "floor", "Ceil": "ceil", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin arcsin",
    "Acos": "acos arccos", "Atan": "atan arctan", "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh arcsinh",
    "Acosh": "acosh arccosh", "Atanh": "atanh arctanh", "Erf": "erf special.erf", "Tanh": "tanh", "Sigmoid": "sigmoid special.expit",
}  # fmt: skip


def _function(kind: str) -> Callable[..., Val]:
    def translate(g: Graph, input: Val) -> Val:
        wanted = g.out.dtype
        if not g.out.is_float and kind in ("Floor", "Ceil"):
            return input
        compute = _C.int32 if wanted in SMALL else wanted
        return g.cast(g.same(kind, g.cast(input, compute)), wanted)

    return translate


for _kind, _names in _UNARY.items():
    op(*_names.split())(_function(_kind))


@op("round")
def round(g: Graph, input: Val, *, decimals: int = 0) -> Val:
    if not input.is_float:
        return input
    if decimals == 0:
        return g.same("Round", input)
    scale = g.number(10.0**decimals, input.dtype)
    return g.op("Div", [g.same("Round", g.op("Mul", [input, scale], input.dtype)), scale], input.dtype, input.shape)


@op("rsqrt")
def rsqrt(g: Graph, input: Val) -> Val:
    return g.same("Reciprocal", g.same("Sqrt", g.cast(input, g.out.dtype)))


@op("log2")
def log2(g: Graph, input: Val) -> Val:
    return _logarithm(g, input, math.log(2))


@op("log10")
def log10(g: Graph, input: Val) -> Val:
    return _logarithm(g, input, math.log(10))


def _logarithm(g: Graph, input: Val, scale: float) -> Val:
    x = g.same("Log", g.cast(input, g.out.dtype))
    return g.op("Div", [x, g.number(scale, x.dtype)], x.dtype, x.shape)


@op("log1p", "special.log1p")
def log1p(g: Graph, input: Val) -> Val:
    x = g.cast(input, g.out.dtype)
    return g.same("Log", g.op("Add", [x, g.number(1, x.dtype)], x.dtype, x.shape))


@op("expm1", "special.expm1")
def expm1(g: Graph, input: Val) -> Val:
    x = g.same("Exp", g.cast(input, g.out.dtype))
    return g.op("Sub", [x, g.number(1, x.dtype)], x.dtype, x.shape)


@op("exp2", "special.exp2")
def exp2(g: Graph, input: Val) -> Val:
    x = g.cast(input, g.out.dtype)
    return g.op("Pow", [g.number(2, x.dtype), x], x.dtype, x.shape)


@op("erfc", "special.erfc")
def erfc(g: Graph, input: Val) -> Val:
    x = g.same("Erf", g.cast(input, g.out.dtype))
    return g.op("Sub", [g.number(1, x.dtype), x], x.dtype, x.shape)


@op("deg2rad", "rad2deg")
def _angle(g: Graph, input: Val) -> Val:
    factor = math.pi / 180 if g.key.startswith("deg2rad") else 180 / math.pi
    return binary(g, "Mul", input, factor)


@op("clamp", "clip")
def clamp(g: Graph, input: Val, min: Any = None, max: Any = None) -> Val:
    kind = g.out.dtype
    compute = _C.int32 if kind in SMALL else kind
    x = g.cast(input, compute)
    if not isinstance(min, Val) and not isinstance(max, Val):
        limits = [None if v is None else g.number(v, compute) for v in (min, max)]
        return g.cast(g.op("Clip", [x, *limits], compute, g.out.shape), kind)
    for node, limit in (("Max", min), ("Min", max)):
        if limit is not None:
            x = g.op(node, [x, operand(g, limit, compute)], compute, g.out.shape)
    return g.cast(x, kind)


@op("clamp_min")
def clamp_min(g: Graph, input: Val, min: Any) -> Val:
    return clamp(g, input, min)


@op("clamp_max")
def clamp_max(g: Graph, input: Val, max: Any) -> Val:
    return clamp(g, input, None, max)


@op("relu", "nn.functional.relu")
def relu(g: Graph, input: Val, inplace: bool = False) -> Val:
    if input.dtype in WHOLE:
        return clamp(g, input, 0)
    return g.same("Relu", input)


@op("heaviside")
def heaviside(g: Graph, input: Val, values: Val) -> Val:
    zero = g.number(0, input.dtype)
    above = g.cast(g.op("Greater", [input, zero], _C.bool, input.shape), input.dtype)
    return g.op("Where", [g.op("Equal", [input, zero], _C.bool, input.shape), values, above], input.dtype, g.out.shape)


@op("logaddexp")
def logaddexp(g: Graph, input: Val, other: Val) -> Val:
    kind, shape = g.out.dtype, g.out.shape
    high = g.op("Max", [input, other], kind, shape)
    parts = [g.op("Exp", [g.op("Sub", [v, high], kind, shape)], kind, shape) for v in (input, other)]
    return g.op("Add", [high, g.op("Log", [g.op("Add", parts, kind, shape)], kind, shape)], kind, shape)


@op("logit", "special.logit")
def logit(g: Graph, input: Val, eps: float | None = None) -> Val:
    kind, shape = g.out.dtype, g.out.shape
    x = g.cast(input, kind)
    if eps is not None:
        x = g.op("Clip", [x, g.number(eps, kind), g.number(1 - eps, kind)], kind, shape)
    rest = g.op("Sub", [g.number(1, kind), x], kind, shape)
    return g.op("Log", [g.op("Div", [x, rest], kind, shape)], kind, shape)


# --- casts, and what keeps the elements

_CASTS = "to type float double half bfloat16 int long short char byte bool type_as cpu cuda gpu"


@op(*_CASTS.split())
def cast(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    return g.cast(input, g.out.dtype)


@op("clone", "detach", "alias", "data.__get__", "contiguous", "requires_grad_", "requires_grad", "lift_fresh", "positive", "__pos__",
    "resolve_conj", "resolve_neg", "real", "real.__get__", "conj", "conj_physical",
    "pin_memory", "alias_copy")  # fmt: skip
def identity(g: Graph, input: Val, *args: Any, **kwargs: Any) -> Val:
    return input


@op("copy")
def copy(g: Graph, input: Val, src: Any, non_blocking: bool = False) -> Val:
    return g.expand(operand(g, src, input.dtype), input.shape or [])


@op("fill")
def fill(g: Graph, input: Val, value: Any) -> Val:
    return g.expand(operand(g, value, input.dtype), input.shape or [])


@op("zero")
def zero(g: Graph, input: Val) -> Val:
    return fill(g, input, 0)
