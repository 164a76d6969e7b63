"""Normalisations."""

from __future__ import annotations

from typing import Any

from ... import _C, finfo
from .._graph import Graph, Val, op
from .reduce import variance


def _filled(g: Graph, n: Any, value: float, kind: Any) -> Val:
    return g.constant(_C.ops["full"]([int(g.static(n, "a number of channels"))], value, dtype=kind), "filled")


def per_channel(g: Graph, x: Val, weight: Val | None, bias: Val | None, ndim: int) -> Val:
    """`x * weight + bias` along the second dimension."""
    for kind, v in (("Mul", weight), ("Add", bias)):
        if v is not None:
            x = g.op(kind, [x, g.reshape(v, [-1] + [1] * (ndim - 2)) if ndim > 2 else v], x.dtype, x.shape)
    return x


@op("batch_norm")
def batch_norm(
    g: Graph, input: Val, running_mean: Val | None, running_var: Val | None, weight: Val | None = None, bias: Val | None = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Val:  # fmt: skip
    x, kind = input, input.dtype
    if training or running_mean is None or running_var is None:
        axes = [i for i in range(x.ndim) if i != 1]
        spread, mean = variance(g, x, axes, True, 0)
        scale = g.same("Sqrt", g.op("Add", [spread, g.number(eps, kind)], kind, spread.shape))
        normal = g.op("Div", [g.op("Sub", [x, mean], kind, x.shape), scale], kind, x.shape)
        return per_channel(g, normal, weight, bias, x.ndim)
    channels = (x.shape or [])[1]
    stats = running_mean.dtype
    weight = weight if weight is not None else _filled(g, channels, 1, stats)
    bias = bias if bias is not None else _filled(g, channels, 0, stats)
    return g.same("BatchNormalization", x, weight, bias, running_mean, running_var, epsilon=float(eps))


@op("torch_batch_norm")
def torch_batch_norm(
    g: Graph,
    input: Val,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Val:
    return batch_norm(g, input, running_mean, running_var, weight, bias, training, momentum, eps)


@op("instance_norm")
def instance_norm(
    g: Graph, input: Val, running_mean: Val | None = None, running_var: Val | None = None, weight: Val | None = None,
    bias: Val | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Val:  # fmt: skip
    if not use_input_stats:
        return batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels = (input.shape or [])[1]
    weight = weight if weight is not None else _filled(g, channels, 1, input.dtype)
    bias = bias if bias is not None else _filled(g, channels, 0, input.dtype)
    return g.same("InstanceNormalization", input, weight, bias, epsilon=float(eps))


@op("torch_instance_norm")
def torch_instance_norm(
    g: Graph,
    input: Val,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Val:
    return instance_norm(g, input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@op("layer_norm", "native_layer_norm")
def layer_norm(
    g: Graph,
    input: Val,
    normalized_shape: Any,
    weight: Val | None = None,
    bias: Val | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Val:
    shape = [int(n) for n in g.static(list(normalized_shape), "a normalised size")]
    kind = input.dtype
    if g.opset >= 17:
        scale = weight if weight is not None else g.constant(_C.ops["ones"](shape, dtype=kind), "filled")
        return g.same("LayerNormalization", input, scale, bias, axis=-len(shape), epsilon=float(eps))
    axes = list(range(input.ndim - len(shape), input.ndim))
    spread, mean = variance(g, input, axes, True, 0)
    scale = g.same("Sqrt", g.op("Add", [spread, g.number(eps, kind)], kind, spread.shape))
    x = g.op("Div", [g.op("Sub", [input, mean], kind, input.shape), scale], kind, input.shape)
    for node, v in (("Mul", weight), ("Add", bias)):
        x = x if v is None else g.op(node, [x, v], kind, input.shape)
    return x


@op("group_norm")
def group_norm(
    g: Graph,
    input: Val,
    num_groups: int,
    weight: Val | None = None,
    bias: Val | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Val:
    n = (input.shape or [])[0]
    x = g.op("Reshape", [input, g.ints([0, num_groups, -1])], input.dtype, [n, num_groups, -1])
    one, zero = (_filled(g, num_groups, v, input.dtype) for v in (1, 0))
    normal = g.same("InstanceNormalization", x, one, zero, epsilon=float(eps))
    back = g.op("Reshape", [normal, g.shape(input)], input.dtype, input.shape)
    return per_channel(g, back, weight, bias, input.ndim)


@op("rms_norm")
def rms_norm(g: Graph, input: Val, normalized_shape: Any, weight: Val | None = None, eps: float | None = None) -> Val:
    kind = input.dtype
    axes = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean = g.reduce("ReduceMean", g.op("Mul", [input, input], kind, input.shape), axes, True)
    root = g.same(
        "Sqrt", g.op("Add", [mean, g.number(finfo(kind).eps if eps is None else eps, kind)], kind, mean.shape)
    )
    x = g.op("Div", [input, root], kind, input.shape)
    return x if weight is None else g.op("Mul", [x, weight], kind, input.shape)


@op("local_response_norm")
def local_response_norm(
    g: Graph, input: Val, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Val:
    if size % 2 == 0:
        g.unsupported("an even size")
    return g.same("LRN", input, size=size, alpha=float(alpha), beta=float(beta), bias=float(k))
