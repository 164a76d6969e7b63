"""Gradients of views and moves."""

from __future__ import annotations

from typing import Any

from .._ops import ops
from ._composites import reshaped
from ._formulas import gradient_of, run, view_of

__all__: list[str] = []

aten = ops.aten


@view_of(aten.t.default)
def _t(c: Any, g: Any) -> Any:
    return {"self": run(aten.t.default, g)}


@view_of(aten.transpose.int)
def _transpose(c: Any, g: Any) -> Any:
    return {"self": run(aten.transpose.int, g, c.dim0, c.dim1)}


@view_of(aten.permute.default)
def _permute(c: Any, g: Any) -> Any:
    order = [d % len(c.dims) for d in c.dims]
    return {"self": run(aten.permute.default, g, [order.index(i) for i in range(len(order))])}


@view_of(aten.view.default, aten._reshape_alias.default)
def _view(c: Any, g: Any) -> Any:
    return {"self": reshaped(g, list(c.shape("self").shape))}


@gradient_of(aten._unsafe_view.default)
def _unsafe_view(c: Any, g: Any) -> Any:
    return {"self": reshaped(g, list(c.shape("self").shape))}


@view_of(aten.expand.default)
def _expand(c: Any, g: Any) -> Any:
    return {"self": c.fitted("self", g)}


@view_of(aten.alias.default, aten.lift_fresh.default)
def _alias(c: Any, g: Any) -> Any:
    return {"self": g}


@gradient_of(aten.clone.default)
def _clone(c: Any, g: Any) -> Any:
    return {"self": g}


@gradient_of(aten._to_copy.default)
def _to_copy(c: Any, g: Any) -> Any:
    shape = c.shape("self")
    changed = {k: v for k, v in (("dtype", shape.dtype), ("device", shape.device)) if getattr(g, k) != v}
    return {"self": run(aten._to_copy.default, g, **changed) if changed else g}


@view_of(aten.unsqueeze.default)
def _unsqueeze(c: Any, g: Any) -> Any:
    return {"self": run(aten.squeeze.dim, g, c.dim)}


@view_of(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def _squeeze(c: Any, g: Any) -> Any:
    shape = c.shape("self").shape
    dim = getattr(c, "dim", None) if "dim" in c._shapes else None
    if isinstance(dim, int):
        return {"self": run(aten.unsqueeze.default, g, dim % len(shape)) if len(shape) and shape[dim] == 1 else g}
    return {"self": run(aten.view.default, g, list(shape)) if tuple(g.shape) != shape else g}


@view_of(aten.select.int)
def _select(c: Any, g: Any) -> Any:
    return {"self": run(aten.select_backward.default, g, list(c.shape("self").shape), c.dim, c.index)}


@view_of(aten.slice.Tensor)
def _slice(c: Any, g: Any) -> Any:
    shape, end = list(c.shape("self").shape), c.end
    start = 0 if c.start is None else c.start
    end = 2**63 - 1 if end is None else end
    return {"self": run(aten.slice_backward.default, g, shape, c.dim, start, end, c.step)}


@view_of(aten.diagonal.default)
def _diagonal(c: Any, g: Any) -> Any:
    shape = c.shape("self")
    zeros = run(aten.zeros.default, list(shape.shape), dtype=g.dtype, device=g.device)
    return {"self": run(aten.diagonal_scatter.default, zeros, g, c.offset, c.dim1, c.dim2)}


def _joined(c: Any, grads: Any, sizes: list[int], dim: int) -> Any:
    """The gradients of pieces along a dimension, zeros where there is none."""
    like = next(g for g in grads if g is not None)
    shape = list(c.shape("self").shape)
    parts = [
        g
        if g is not None
        else run(aten.zeros.default, [*shape[:dim], n, *shape[dim + 1 :]], dtype=like.dtype, device=like.device)
        for g, n in zip(grads, sizes)
    ]
    return {"self": run(aten.cat.default, parts, dim)}


def _listed(g: Any) -> Any:
    return list(g) if isinstance(g, (list, tuple)) else [g]


@view_of(aten.split.Tensor)
def _split(c: Any, g: Any) -> Any:
    shape = c.shape("self").shape
    dim = c.dim % len(shape)
    n, size = shape[dim], max(c.split_size, 1)
    return _joined(c, _listed(g), [min(size, n - i) for i in range(0, max(n, 1), size)], dim)


@view_of(aten.split_with_sizes.default)
def _split_with_sizes(c: Any, g: Any) -> Any:
    return _joined(c, _listed(g), list(c.split_sizes), c.dim % len(c.shape("self").shape))


@view_of(aten.unbind.int)
def _unbind(c: Any, g: Any) -> Any:
    grads = _listed(g)
    like = next(x for x in grads if x is not None)
    shape = list(like.shape)
    parts = [
        x if x is not None else run(aten.zeros.default, shape, dtype=like.dtype, device=like.device) for x in grads
    ]
    return {"self": run(aten.stack.default, parts, c.dim)}


@gradient_of(aten.cat.default)
def _cat(c: Any, g: Any) -> Any:
    found, at = [], 0
    shapes = c.shape("tensors")
    for shape in shapes:
        if shape.shape == (0,) and g.dim() != 1:
            found.append(run(aten.zeros.default, [0], dtype=g.dtype, device=g.device))
            continue
        size = shape.shape[c.dim % g.dim()]
        found.append(run(aten.slice.Tensor, g, c.dim, at, at + size))
        at += size
    return {"tensors": found}


@gradient_of(aten.stack.default)
def _stack(c: Any, g: Any) -> Any:
    return {"tensors": list(run(aten.unbind.int, g, c.dim))}


@gradient_of(aten.index.Tensor, saves="indices")
def _index(c: Any, g: Any) -> Any:
    zeros = run(aten.new_zeros.default, g, list(c.shape("self").shape))
    return {"self": run(aten.index_put.default, zeros, list(c.indices), g, True)}


@gradient_of(aten.index_select.default, saves="index")
def _index_select(c: Any, g: Any) -> Any:
    zeros = run(aten.new_zeros.default, g, list(c.shape("self").shape))
    return {"self": run(aten.index_add.default, zeros, c.dim, c.index, g)}


@gradient_of(aten.gather.default, saves="index")
def _gather(c: Any, g: Any) -> Any:
    zeros = run(aten.new_zeros.default, g, list(c.shape("self").shape))
    return {"self": run(aten.scatter_add.default, zeros, c.dim, c.index, g)}


@gradient_of(aten.flip.default)
def _flip(c: Any, g: Any) -> Any:
    return {"self": run(aten.flip.default, g, list(c.dims))}


@gradient_of(aten.roll.default)
def _roll(c: Any, g: Any) -> Any:
    return {"self": run(aten.roll.default, g, [-n for n in c.shifts], list(c.dims))}


@gradient_of(aten.constant_pad_nd.default)
def _constant_pad_nd(c: Any, g: Any) -> Any:
    return {"self": run(aten.constant_pad_nd.default, g, [-n for n in c.pad])}


@gradient_of(aten.repeat.default)
def _repeat(c: Any, g: Any) -> Any:
    shape, repeats = list(c.shape("self").shape), list(c.repeats)
    if not repeats:
        return {"self": g}
    shape = [1] * (len(repeats) - len(shape)) + shape
    apart = [n for pair in zip(repeats, shape) for n in pair]
    made = run(aten.sum.dim_IntList, run(aten.view.default, g, apart), list(range(0, len(apart), 2)))
    return {
        "self": made
        if tuple(made.shape) == c.shape("self").shape
        else run(aten.view.default, made, list(c.shape("self").shape))
    }


@gradient_of(aten.tril.default)
def _tril(c: Any, g: Any) -> Any:
    return {"self": run(aten.tril.default, g, c.diagonal)}


@gradient_of(aten.triu.default)
def _triu(c: Any, g: Any) -> Any:
    return {"self": run(aten.triu.default, g, c.diagonal)}


def _nothing(g: Any) -> Any:
    return run(aten.zeros_like.default, g)


@gradient_of(aten.copy.default)
def _copy(c: Any, g: Any) -> Any:
    found = {"self": _nothing(g)} if c.needs("self") else {}
    if c.needs("src"):
        found["src"] = c.fitted("src", g)
    return found


@gradient_of(aten.fill.Scalar, aten.zero.default)
def _fill(c: Any, g: Any) -> Any:
    return {"self": _nothing(g)}
