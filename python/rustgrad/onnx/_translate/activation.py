"""Activations, softmaxes, dropout, and the losses that models compute in `forward`."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._graph import HALVES, Graph, Val, axis_of, op
from .elementwise import clamp, operand


def _times(g: Graph, a: Val, b: Val) -> Val:
    return g.op("Mul", [a, b], a.dtype, a.shape)


def _plus(g: Graph, a: Val, b: Any) -> Val:
    return g.op("Add", [a, operand(g, b, a.dtype)], a.dtype, a.shape)


@op("gelu")
def gelu(g: Graph, input: Val, approximate: str = "none") -> Val:
    if g.opset >= 20:
        return g.same("Gelu", input, approximate=approximate)
    number = lambda v: g.number(v, input.dtype)  # noqa: E731
    if approximate == "tanh":
        cube = _times(g, input, _times(g, input, input))
        inner = _times(g, _plus(g, input, _times(g, cube, number(0.044715))), number(math.sqrt(2 / math.pi)))
        gate = g.same("Tanh", inner)
    else:
        gate = g.same("Erf", _times(g, input, number(math.sqrt(0.5))))
    return _times(g, _times(g, input, number(0.5)), _plus(g, gate, 1))


@op("silu")
def silu(g: Graph, input: Val, inplace: bool = False) -> Val:
    return _times(g, input, g.same("Sigmoid", input))


@op("mish")
def mish(g: Graph, input: Val, inplace: bool = False) -> Val:
    return g.same("Mish", input) if g.opset >= 18 else _times(g, input, g.same("Tanh", g.same("Softplus", input)))


@op("leaky_relu")
def leaky_relu(g: Graph, input: Val, negative_slope: float = 0.01, inplace: bool = False) -> Val:
    return g.same("LeakyRelu", input, alpha=float(negative_slope))


@op("rrelu")
def rrelu(
    g: Graph, input: Val, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Val:
    if training:
        g.unsupported("training=True")
    return leaky_relu(g, input, (lower + upper) / 2)


@op("elu")
def elu(g: Graph, input: Val, alpha: float = 1.0, inplace: bool = False) -> Val:
    return g.same("Elu", input, alpha=float(alpha))


@op("celu")
def celu(g: Graph, input: Val, alpha: float = 1.0, inplace: bool = False) -> Val:
    return g.same("Celu", input, alpha=float(alpha))


@op("selu")
def selu(g: Graph, input: Val, inplace: bool = False) -> Val:
    return g.same("Selu", input)


@op("relu6")
def relu6(g: Graph, input: Val, inplace: bool = False) -> Val:
    return clamp(g, input, 0, 6)


@op("hardtanh")
def hardtanh(g: Graph, input: Val, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Val:
    return clamp(g, input, min_val, max_val)


@op("hardsigmoid")
def hardsigmoid(g: Graph, input: Val, inplace: bool = False) -> Val:
    return g.same("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@op("hardswish")
def hardswish(g: Graph, input: Val, inplace: bool = False) -> Val:
    return g.same("HardSwish", input) if g.opset >= 14 else _times(g, input, hardsigmoid(g, input))


@op("softplus")
def softplus(g: Graph, input: Val, beta: float = 1.0, threshold: float = 20.0) -> Val:
    scaled = _times(g, input, g.number(beta, input.dtype)) if beta != 1 else input
    soft = g.same("Softplus", scaled)
    soft = g.op("Div", [soft, g.number(beta, input.dtype)], input.dtype, input.shape) if beta != 1 else soft
    large = g.op("Greater", [scaled, g.number(threshold, input.dtype)], _C.bool, input.shape)
    return g.op("Where", [large, input, soft], input.dtype, input.shape)


@op("softsign")
def softsign(g: Graph, input: Val) -> Val:
    return g.same("Softsign", input)


@op("tanhshrink")
def tanhshrink(g: Graph, input: Val) -> Val:
    return g.op("Sub", [input, g.same("Tanh", input)], input.dtype, input.shape)


@op("hardshrink", "softshrink")
def shrink(g: Graph, input: Val, lambd: float = 0.5) -> Val:
    bias = 0.0 if g.key == "hardshrink" else float(lambd)
    return g.same("Shrink", input, lambd=float(lambd), bias=bias)


@op("threshold")
def threshold(g: Graph, input: Val, threshold: float, value: float, inplace: bool = False) -> Val:
    above = g.op("Greater", [input, g.number(threshold, input.dtype)], _C.bool, input.shape)
    return g.op("Where", [above, input, g.number(value, input.dtype)], input.dtype, input.shape)


@op("prelu")
def prelu(g: Graph, input: Val, weight: Val) -> Val:
    slope = weight
    if weight.ndim == 1 and input.ndim > 2 and weight.shape != [1]:
        slope = g.reshape(weight, [-1] + [1] * (input.ndim - 2))
    return g.op("PRelu", [input, slope], input.dtype, input.shape)


@op("logsigmoid", "log_sigmoid")
def logsigmoid(g: Graph, input: Val) -> Val:
    return g.same("Neg", g.same("Softplus", g.same("Neg", input)))


@op("glu")
def glu(g: Graph, input: Val, dim: int = -1) -> Val:
    axis = axis_of(dim, input.ndim)
    half = (input.shape or [])[axis] // 2
    a, b = g.several("Split", [input, g.ints([half, half])], [input.dtype] * 2, axis=axis)
    a.shape = b.shape = [half if i == axis else n for i, n in enumerate(input.shape or [])]
    return _times(g, a, g.same("Sigmoid", b))


@op("softmax", "log_softmax", "softmin", "special.softmax", "special.log_softmax")
def softmax(g: Graph, input: Val, dim: Any = None, *args: Any, **kwargs: Any) -> Val:
    x = g.cast(input, g.out.dtype)
    if x.ndim == 0:
        return g.op("Sub", [x, x], x.dtype, []) if "log" in g.key else g.same("Exp", g.op("Sub", [x, x], x.dtype, []))
    if dim is None or isinstance(dim, bool):
        dim = 0 if x.ndim in (1, 3) else 1
    if g.key == "softmin":
        x = g.same("Neg", x)
    return g.same("LogSoftmax" if "log" in g.key else "Softmax", x, axis=axis_of(dim, x.ndim))


@op("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
def dropout(g: Graph, input: Val, p: float = 0.5, training: bool = True, inplace: bool = False) -> Val:
    if not training or p == 0:
        return input
    if g.key != "dropout":
        g.unsupported("training=True")
    ratio = g.number(p, _C.float32 if input.dtype in HALVES else input.dtype)
    return g.same("Dropout", input, ratio, g.number(True, _C.bool))
