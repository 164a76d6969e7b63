"""Convolutions, pooling, and rearrangements of pixels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import _C
from .._graph import Graph, Val, op, product


def many(value: Any, n: int) -> list[int]:
    """One number for each of `n` dimensions."""
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    return found * n if len(found) == 1 else found


def batched(g: Graph, x: Val, dims: int) -> tuple[Val, Callable[[Val], Val]]:
    """The input with a batch dimension, and what takes it away again."""
    if x.ndim == dims + 2:
        return x, lambda y: y
    return g.unsqueeze(x, [0]), lambda y: g.squeeze(y, [0])


@op("conv1d", "conv2d", "conv3d")
def conv(
    g: Graph,
    input: Val,
    weight: Val,
    bias: Val | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Val:
    n = weight.ndim - 2
    x, back = batched(g, input, n)
    kernel = g.static([int(k) for k in (weight.shape or [])[2:]], "a kernel")
    stride, dilation = many(stride, n), many(dilation, n)
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel)]
        pads = [p // 2 for p in total] + [p - p // 2 for p in total]
    else:
        pads = many(padding, n) * 2
    g.static([*stride, *dilation, *pads, groups], "a stride, padding or dilation")
    y = g.op(
        "Conv",
        [x, weight, bias],
        x.dtype,
        kernel_shape=kernel,
        strides=stride,
        pads=pads,
        dilations=dilation,
        group=groups,
    )
    return back(y)


@op("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    g: Graph, input: Val, weight: Val, bias: Val | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Val:  # fmt: skip
    n = weight.ndim - 2
    x, back = batched(g, input, n)
    kernel = g.static([int(k) for k in (weight.shape or [])[2:]], "a kernel")
    numbers = [many(v, n) for v in (stride, padding, output_padding, dilation)]
    g.static([v for each in numbers for v in each], "a stride, padding or dilation")
    stride, padding, output_padding, dilation = numbers
    y = g.op(
        "ConvTranspose", [x, weight, bias], x.dtype, kernel_shape=kernel, strides=stride, pads=padding * 2,
        output_padding=output_padding, dilations=dilation, group=groups,
    )  # fmt: skip
    return back(y)


@op("convolution", "_convolution")
def convolution(
    g: Graph, input: Val, weight: Val, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int, *args: Any,
) -> Val:  # fmt: skip
    if transposed:
        return conv_transpose(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(g, input, weight, bias, stride, padding, dilation, groups)


def _dims(g: Graph) -> int:
    return int(next(c for c in g.key if c.isdigit()))


@op(
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
)
def max_pool(
    g: Graph, input: Val, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    n = _dims(g)
    with_indices = return_indices or "indices" in g.key
    x, back = batched(g, input, n)
    kernel = many(kernel_size, n)
    steps = many(stride, n) if stride not in (None, [], ()) else kernel
    pads, dilation = many(padding, n), many(dilation, n)
    shape = {"kernel_shape": kernel, "strides": steps, "dilations": dilation, "ceil_mode": int(ceil_mode)}
    if not with_indices:
        return back(g.op("MaxPool", [x], x.dtype, pads=pads * 2, **shape))
    y, indices = g.several("MaxPool", [x], [x.dtype, _C.int64], pads=pads * 2, **shape)
    # ONNX numbers the elements of the whole tensor, PyTorch those of a plane.
    plane = product((x.shape or [])[2:])
    return [back(y), back(g.op("Mod", [indices, g.size(plane, 1)], _C.int64, indices.shape))]


@op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    g: Graph, input: Val, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Val:  # fmt: skip
    n = _dims(g)
    x, back = batched(g, input, n)
    kernel = many(kernel_size, n)
    steps = many(stride, n) if stride not in (None, [], ()) else kernel
    pads = many(padding, n)
    if ceil_mode and g.opset < 19:
        sizes = g.static((x.shape or [])[2:], "a mean over windows with ceil_mode")
        if any((s + 2 * p - k) % t for s, p, k, t in zip(sizes, pads, kernel, steps)):
            g.require(19)
        ceil_mode = False
    y = g.op(
        "AveragePool", [x], x.dtype, kernel_shape=kernel, strides=steps, pads=pads * 2, ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad or divisor_override is not None),
    )  # fmt: skip
    if divisor_override is not None:
        y = g.op("Mul", [y, g.number(math.prod(kernel) / divisor_override, x.dtype)], x.dtype, y.shape)
    return back(y)


@op("lp_pool1d", "lp_pool2d", "lp_pool3d")
def lp_pool(
    g: Graph, input: Val, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Val:
    kernel = many(kernel_size, _dims(g))
    size = g.op("Pow", [g.same("Abs", input), g.number(float(norm_type), input.dtype)], input.dtype, input.shape)
    mean = avg_pool(g, size, kernel, stride, 0, ceil_mode)
    total = g.op("Mul", [mean, g.number(math.prod(kernel), input.dtype)], input.dtype)
    return g.op("Pow", [total, g.number(1 / norm_type, input.dtype)], input.dtype, g.out.shape)


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _targets(g: Graph, x: Val, output_size: Any) -> list[tuple[int, Any, int]]:
    """(dimension, size, wanted size) of each dimension that is pooled to another size."""
    n = _dims(g)
    wanted = many(output_size, n)
    found = []
    for axis, want in zip(range(x.ndim - n, x.ndim), wanted):
        size = (x.shape or [])[axis]
        if want is not None and (type(size) is not int or size != want):
            found.append((axis, size, want))
    return found


@op("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_avg_pool(g: Graph, input: Val, output_size: Any) -> Val:
    targets = _targets(g, input, output_size)
    ones = [axis for axis, _, want in targets if type(want) is int and want == 1]
    x = g.reduce("ReduceMean", input, ones, True) if ones else input
    for axis, size, want in targets:
        if axis in ones:
            continue
        g.static([size, want], "adaptive pooling of or to a size")
        weights = _C.ops["zeros"]([size, want], dtype=x.dtype)
        for i, (a, b) in enumerate(_windows(size, want)):
            weights[a:b, i] = 1 / (b - a)
        order = [*(d for d in range(x.ndim) if d != axis), axis]
        y = g.op("MatMul", [g.transpose(x, order), g.constant(weights, "windows")], x.dtype, [-1] * x.ndim)
        x = g.transpose(y, [order.index(d) for d in range(x.ndim)])
    return x


@op("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(g: Graph, input: Val, output_size: Any, return_indices: bool = False) -> Val:
    if return_indices or len(g.outs) > 1:
        g.unsupported("the indices")
    targets = _targets(g, input, output_size)
    ones = [axis for axis, _, want in targets if type(want) is int and want == 1]
    x = g.reduce("ReduceMax", input, ones, True) if ones else input
    for axis, size, want in targets:
        if axis in ones:
            continue
        g.static([size, want], "adaptive pooling of or to a size")
        windows = _windows(size, want)
        widest = max(b - a for a, b in windows)
        index = _C.tensor([[min(a + i, b - 1) for i in range(widest)] for a, b in windows])
        shape = list(x.shape or [])
        taken = g.op(
            "Gather", [x, g.constant(index)], x.dtype, [*shape[:axis], want, widest, *shape[axis + 1 :]], axis=axis
        )
        x = g.reduce("ReduceMax", taken, [axis + 1], False)
    return x


@op("max_unpool1d", "max_unpool2d", "max_unpool3d")
def max_unpool(g: Graph, input: Val, indices: Val, *args: Any, **kwargs: Any) -> Val:
    n = _dims(g)
    shape = list(g.out.shape or [])
    g.static(shape[-n:], "a size")
    lead = (input.shape or [])[:-n]
    flat = g.expand(g.number(0, input.dtype), [*lead, product(shape[-n:])])
    parts = [g.reshape(v, [*lead, -1]) for v in (indices, input)]
    filled = g.op("ScatterElements", [flat, *parts], input.dtype, axis=len(lead))
    return g.reshape(filled, [*lead, *shape[-n:]])


@op("pixel_shuffle")
def pixel_shuffle(g: Graph, input: Val, upscale_factor: int) -> Val:
    if input.ndim == 4:
        return g.op("DepthToSpace", [input], input.dtype, blocksize=upscale_factor, mode="CRD")
    r, lead = upscale_factor, (input.shape or [])[:-3]
    c, h, w = (input.shape or [])[-3:]
    x = g.reshape(input, [*lead, c // (r * r), r, r, h, w])
    k = len(lead)
    return g.reshape(g.transpose(x, [*range(k), k, k + 3, k + 1, k + 4, k + 2]), [*lead, c // (r * r), h * r, w * r])


@op("pixel_unshuffle")
def pixel_unshuffle(g: Graph, input: Val, downscale_factor: int) -> Val:
    r, lead = downscale_factor, (input.shape or [])[:-3]
    c, h, w = (input.shape or [])[-3:]
    x = g.reshape(input, [*lead, c, h // r, r, w // r, r])
    k = len(lead)
    return g.reshape(g.transpose(x, [*range(k), k, k + 2, k + 4, k + 1, k + 3]), [*lead, c * r * r, h // r, w // r])


@op("im2col")
def im2col(g: Graph, input: Val, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Val:
    x, back = batched(g, input, 2)
    kernel, dilation, padding, stride = (many(v, 2) for v in (kernel_size, dilation, padding, stride))
    n, c, *plane = x.shape or []
    g.static(plane, "a plane")
    if any(padding):
        x = g.op("Pad", [x, g.ints([0, 0, *padding] * 2)], x.dtype)
    size = [s + 2 * p for s, p in zip(plane, padding)]
    counts = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(size, dilation, kernel, stride)]
    axes = [
        (_C.ops["arange"](k) * d).reshape([-1, 1]) + _C.ops["arange"](m) * t
        for k, d, m, t in zip(kernel, dilation, counts, stride)
    ]
    rows, columns = axes[0].reshape([kernel[0], 1, counts[0], 1]), axes[1].reshape([1, kernel[1], 1, counts[1]])
    index = (rows * size[1] + columns).reshape([math.prod(kernel), math.prod(counts)])
    flat = g.reshape(x, [n, c, size[0] * size[1]])
    taken = g.op("Gather", [flat, g.constant(index)], x.dtype, [n, c, *index.shape], axis=2)
    return back(g.reshape(taken, [n, c * math.prod(kernel), math.prod(counts)]))


@op("col2im")
def col2im(
    g: Graph, input: Val, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Val:
    g.require(18)
    x, back = batched(g, input, 1)
    options = {"dilations": many(dilation, 2), "pads": many(padding, 2) * 2, "strides": many(stride, 2)}
    return back(g.op("Col2Im", [x, g.ints(many(output_size, 2)), g.ints(many(kernel_size, 2))], x.dtype, **options))
