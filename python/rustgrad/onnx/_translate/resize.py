"""Resizing of images and sampling at positions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ... import _C
from .._graph import Graph, Val, op
from .convolution import many

_KINDS = {
    "nearest": "nearest",
    "nearest-exact": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


@op("interpolate", "upsample", "upsample_nearest", "upsample_bilinear")
def interpolate(
    g: Graph, input: Val, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Val:  # fmt: skip
    n = input.ndim - 2
    if g.key == "upsample_bilinear":
        mode, align_corners = "bilinear", True
    if mode == "area":
        wanted = many(size, n) if size is not None else (g.out.shape or [])[2:]
        g.key = f"adaptive_avg_pool{n}d"
        return g.call(g.key, input, wanted)
    options: dict[str, Any] = {"mode": _KINDS[mode]}
    if mode.startswith("nearest"):
        exact = mode == "nearest-exact"
        options["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
        options["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        options["cubic_coeff_a"] = -0.75 if mode == "bicubic" else None
    if antialias:
        g.require(18)
        options["antialias"] = options["exclude_outside"] = 1
    x = input
    if size is None and not recompute_scale_factor:
        factors = [1.0, 1.0, *(float(s) for s in many(scale_factor, n))]
        scales = g.constant(_C.tensor(factors, dtype=_C.float32), "scales")
        return g.op("Resize", [x, None, scales], x.dtype, **options)
    if size is not None:
        wanted = many(size, n)
    else:
        wanted = [_scaled(s, f) for s, f in zip((x.shape or [])[2:], many(scale_factor, n))]
    return g.op("Resize", [x, None, None, g.ints([*(x.shape or [])[:2], *wanted])], x.dtype, **options)


def _scaled(size: Any, factor: float) -> Any:
    """A size times a factor, rounded down."""
    ratio = Fraction(factor)
    return size * ratio.numerator // ratio.denominator


@op("grid_sample", "grid_sampler", "grid_sampler_2d")
def grid_sample(
    g: Graph,
    input: Val,
    grid: Val,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Val:
    g.require(16)
    if input.ndim == 5:
        g.require(20)
    if g.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": int(bool(align_corners))}
    return g.op("GridSample", [input, grid], input.dtype, **options)


@op("affine_grid")
def affine_grid(g: Graph, theta: Val, size: Any, align_corners: bool | None = None) -> Val:
    n, _, *plane = size
    g.static(plane, "a plane")
    k = len(plane)
    axes = []
    for i, m in enumerate(plane):
        line = _C.ops["linspace"](-1, 1, m) if m > 1 else _C.ops["zeros"]([1])
        line = line if align_corners else line * ((m - 1) / m)
        axes.append(line.reshape([-1 if j == i else 1 for j in range(k)]).expand(plane))
    base = _C.ops["stack"]([*axes[::-1], _C.ops["ones"](plane)], -1).reshape([-1, k + 1]).to(theta.dtype)
    grid = g.op("MatMul", [g.constant(base, "base_grid"), g.transpose(theta, [0, 2, 1])], theta.dtype)
    return g.reshape(grid, [n, *plane, k])
