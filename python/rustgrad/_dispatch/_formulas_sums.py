"""Gradients of sums, means, deviations and products of matrices."""

from __future__ import annotations

from typing import Any

from .._ops import ops
from ._formulas import gradient_of, run
from ._formulas_math import _conj, _scaled, _times

__all__: list[str] = []

aten = ops.aten


# --- sums


def _spread(c: Any, g: Any, dim: Any, keepdim: bool) -> Any:
    """A gradient at all places of the dimensions that were summed."""
    shape = list(c.shape("self").shape)
    dims = (
        sorted({d % len(shape) for d in ([dim] if isinstance(dim, int) else dim or range(len(shape)))}) if shape else []
    )
    if not keepdim:
        for d in dims if dim or isinstance(dim, int) else ():
            g = run(aten.unsqueeze.default, g, d)
    return run(aten.expand.default, g, shape), dims


def _cast(c: Any, g: Any) -> Any:
    wanted = c.shape("self").dtype
    return g if g.dtype == wanted else run(aten._to_copy.default, g, dtype=wanted)


@gradient_of(aten.sum.default, aten.sum.dim_IntList)
def _sum(c: Any, g: Any) -> Any:
    dim, keep = c._shapes.get("dim"), c._shapes.get("keepdim", False)
    return {"self": _cast(c, _spread(c, g, dim, keep)[0])}


@gradient_of(aten.mean.default, aten.mean.dim)
def _mean(c: Any, g: Any) -> Any:
    dim, keep = c._shapes.get("dim"), c._shapes.get("keepdim", False)
    made, dims = _spread(c, g, dim, keep)
    count = 1
    for d in dims:
        count *= c.shape("self").shape[d]
    return {"self": _cast(c, run(aten.div.Scalar, made, count))}


@gradient_of(aten.cumsum.default)
def _cumsum(c: Any, g: Any) -> Any:
    if not c.shape("self").shape:
        return {"self": g}
    turned = run(aten.cumsum.default, run(aten.flip.default, g, [c.dim]), c.dim)
    return {"self": run(aten.flip.default, turned, [c.dim])}


@gradient_of(aten.var.correction, saves="self")
def _var(c: Any, g: Any) -> Any:
    dim, keep = c._shapes.get("dim"), c._shapes.get("keepdim", False)
    shape = c.shape("self").shape
    dims = sorted({d % len(shape) for d in (dim or range(len(shape)))}) if shape else []
    count = 1
    for d in dims:
        count *= shape[d]
    correction = 1 if c.correction is None else c.correction
    if not keep and dim:
        for d in dims:
            g = run(aten.unsqueeze.default, g, d)
    centred = run(aten.sub.Tensor, c.self_, run(aten.mean.dim, c.self_, dims, True))
    return {"self": _times(run(aten.mul.Scalar, g, 2.0 / (count - correction)), centred)}


# --- products


def _left(g: Any, left: Any, right: Any) -> Any:
    if left.by_columns and left.shape[0] != 1 and left.shape[1] != 1:
        return run(aten.t.default, run(aten.mm.default, right, run(aten.t.default, g)))
    return run(aten.mm.default, g, run(aten.t.default, right))


def _right(g: Any, left: Any, right: Any) -> Any:
    if right.by_columns:
        return run(aten.t.default, run(aten.mm.default, run(aten.t.default, g), left))
    return run(aten.mm.default, run(aten.t.default, left), g)


@gradient_of(aten.mm.default, saves="self mat2")
def _mm(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("mat2"):
        found["mat2"] = _right(g, _conj(c.self_), c.shape("mat2"))
    if c.needs("self"):
        found["self"] = _left(g, c.shape("self"), _conj(c.mat2))
    return found


@gradient_of(aten.addmm.default, saves="mat1 mat2")
def _addmm(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("mat1"):
        found["mat1"] = _scaled(_left(g, c.shape("mat1"), _conj(c.mat2)), c.alpha)
    if c.needs("mat2"):
        found["mat2"] = _scaled(_right(g, _conj(c.mat1), c.shape("mat2")), c.alpha)
    if c.needs("self"):
        found["self"] = c.fitted("self", _scaled(g, c.beta))
    return found


@gradient_of(aten.bmm.default, saves="self mat2")
def _bmm(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("mat2"):
        found["mat2"] = run(aten.bmm.default, run(aten.transpose.int, _conj(c.self_), 1, 2), g)
    if c.needs("self"):
        found["self"] = run(aten.bmm.default, g, run(aten.transpose.int, _conj(c.mat2), 1, 2))
    return found


@gradient_of(aten.baddbmm.default, saves="batch1 batch2")
def _baddbmm(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("batch1"):
        made = run(aten.bmm.default, g, run(aten.transpose.int, _conj(c.batch2), 1, 2))
        found["batch1"] = _scaled(made, c.alpha)
    if c.needs("batch2"):
        made = run(aten.bmm.default, run(aten.transpose.int, _conj(c.batch1), 1, 2), g)
        found["batch2"] = _scaled(made, c.alpha)
    if c.needs("self"):
        found["self"] = c.fitted("self", _scaled(g, c.beta))
    return found


@gradient_of(aten.mv.default, saves="self vec")
def _mv(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        column, row = run(aten.unsqueeze.default, g, 1), run(aten.unsqueeze.default, _conj(c.vec), 0)
        found["self"] = _times(column, row)
    if c.needs("vec"):
        found["vec"] = run(aten.mv.default, run(aten.t.default, _conj(c.self_)), g)
    return found


@gradient_of(aten.dot.default, saves="self tensor")
def _dot(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        found["self"] = _times(g, _conj(c.tensor))
    if c.needs("tensor"):
        found["tensor"] = _times(g, _conj(c.self_))
    return found


# --- deviations


@gradient_of(aten.std.correction, saves="self result")
def _std(c: Any, g: Any) -> Any:
    half = run(aten.div.Tensor, g, run(aten.mul.Scalar, c.result, 2))
    return _var(c, half)
