"""Losses, where a model computes them itself."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._graph import Graph, Val, op


def reduced(g: Graph, each: Val, options: dict[str, Any]) -> Val:
    """The losses of all elements together, as `reduction` says. OnnxExporterError for the names that it replaced."""
    if options.pop("size_average", None) is not None or options.pop("reduce", None) is not None:
        g.unsupported("size_average or reduce")
    reduction = options.pop("reduction", "mean")
    if options:
        g.unsupported(f"the argument {next(iter(options))}")
    return (
        each
        if reduction == "none"
        else g.reduce("ReduceMean" if reduction == "mean" else "ReduceSum", each, None, False)
    )


def named(args: tuple[Any, ...], kwargs: dict[str, Any], *names: str) -> dict[str, Any]:
    """Arguments by name, without those that are None."""
    given = dict(zip(names, args), **kwargs)
    return {k: v for k, v in given.items() if v is not None}


_OLD = ("size_average", "reduce", "reduction")


@op("mse_loss", "l1_loss")
def power_loss(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    apart = g.op("Sub", [input, target], input.dtype, g.out.shape)
    each = g.same("Abs", apart) if g.key == "l1_loss" else g.op("Mul", [apart, apart], input.dtype, input.shape)
    each.shape = input.shape
    return reduced(g, each, named(args, kwargs, *_OLD))


@op("smooth_l1_loss", "huber_loss")
def smooth_loss(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    kind, smooth = input.dtype, g.key == "smooth_l1_loss"
    options = named(args, kwargs, *(*_OLD, "beta") if smooth else ("reduction", "delta"))
    beta = options.pop("beta" if smooth else "delta", 1.0)
    if beta == 0:
        g.unsupported("beta=0")
    size = g.same("Abs", g.op("Sub", [input, target], kind, input.shape))
    square = g.op("Mul", [g.op("Mul", [size, size], kind), g.number(0.5 / beta if smooth else 0.5, kind)], kind)
    line = g.op("Sub", [size, g.number(0.5 * beta, kind)], kind, input.shape)
    line = line if smooth else g.op("Mul", [line, g.number(beta, kind)], kind, input.shape)
    near = g.op("Less", [size, g.number(beta, kind)], _C.bool, input.shape)
    return reduced(g, g.op("Where", [near, square, line], kind, input.shape), options)


@op("cross_entropy", "nll_loss")
def cross_entropy(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    options = named(args, kwargs, "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
    if target.is_float or options.pop("label_smoothing", 0.0):
        g.unsupported("probabilities as targets or label smoothing")
    kind = "SoftmaxCrossEntropyLoss" if g.key == "cross_entropy" else "NegativeLogLikelihoodLoss"
    weight, ignored, how = (
        options.pop("weight", None),
        options.pop("ignore_index", -100),
        options.pop("reduction", "mean"),
    )
    if options:
        g.unsupported(f"the argument {next(iter(options))}")
    return g.op(kind, [input, target, weight], input.dtype, g.out.shape, ignore_index=int(ignored), reduction=how)


@op("binary_cross_entropy_with_logits")
def bce_with_logits(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    kind = input.dtype
    soft = g.same("Softplus", input)
    each = g.op("Sub", [soft, g.op("Mul", [input, target], kind, input.shape)], kind, input.shape)
    return reduced(g, each, named(args, kwargs, "weight", *_OLD))


@op("binary_cross_entropy")
def binary_cross_entropy(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    kind = input.dtype
    options = named(args, kwargs, "weight", *_OLD)
    weight = options.pop("weight", None)
    least, one = g.number(-100.0, kind), g.number(1, kind)
    others = [g.op("Sub", [one, v], kind, v.shape) for v in (input, target)]
    logs = [g.op("Max", [g.same("Log", v), least], kind, v.shape) for v in (input, others[0])]
    parts = [g.op("Mul", [t, v], kind, v.shape) for t, v in zip((target, others[1]), logs)]
    each = g.same("Neg", g.op("Add", parts, kind, input.shape))
    each = each if weight is None else g.op("Mul", [each, weight], kind, each.shape)
    return reduced(g, each, options)


@op("kl_div")
def kl_div(g: Graph, input: Val, target: Val, *args: Any, **kwargs: Any) -> Val:
    kind = input.dtype
    options = named(args, kwargs, *_OLD, "log_target")
    if options.pop("log_target", False):
        each = g.op("Mul", [g.same("Exp", target), g.op("Sub", [target, input], kind)], kind, input.shape)
    else:
        each = g.op("Sub", [g.call("xlogy", target, target), g.op("Mul", [target, input], kind)], kind, input.shape)
        each.shape = input.shape
    if options.get("reduction") != "batchmean":
        return reduced(g, each, options)
    total = reduced(g, each, {**options, "reduction": "sum"})
    return g.op("Div", [total, g.number((input.shape or [1])[0], kind)], kind, [])
