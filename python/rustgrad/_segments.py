"""`segment_reduce`, composed of ops of the table: the segment of each element is searched, then elements are added up by segment."""

from __future__ import annotations

from ._base import ops
from ._C import Tensor
from ._typing import Number
from .overrides import overridable

__all__ = ["segment_reduce"]

_REDUCTIONS = {"sum": 0.0, "prod": 1.0, "mean": 0.0, "amax": -float("inf"), "amin": float("inf")}


@overridable
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    """The sums, means, products, maxima or minima of segments that lie one after another along a dimension.

    Args:
        data (Tensor): floating-point numbers.
        reduce (str): "sum", "mean", "prod", "max" or "min".
        lengths (Tensor): the length of each segment, along its last dimension; the dimensions before are those of `data`.
        offsets (Tensor): where each segment begins, and where the last ends, instead of `lengths`.
        axis (int): the dimension of `data`, which is the last of `lengths`.
        unsafe (bool): the values of `lengths` and `offsets` are not checked.
        initial (number, optional): what every segment begins with; the result of an empty one. By default that of a mean is NaN.

    Raises:
        RuntimeError: arguments that do not go together, or `lengths` that do not add up to the size of the dimension.
        NotImplementedError: `data` are no floating-point numbers, or lengths no integers.
    """
    name = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if name not in _REDUCTIONS:
        raise RuntimeError(
            f"segment_reduce: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if not -data.dim() <= axis < data.dim():
        n = data.dim()
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {axis})")
    ends, starts = _bounds(data, lengths, indices, offsets, axis % data.dim(), unsafe)
    if not data.is_floating_point():
        raise NotImplementedError(f"segment_reduce: not implemented for tensors of dtype {data.dtype}")
    return _reduced(data, name, starts, ends, axis % data.dim(), initial)


def _bounds(data, lengths, indices, offsets, axis, unsafe):
    """The ends of all segments, and the begin of the first."""
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    what, given = ("lengths", lengths) if offsets is None else ("offsets", offsets)
    if given.is_floating_point() or given.is_complex():
        raise NotImplementedError(f"segment_reduce: {what} of dtype {given.dtype} are no integers")
    if axis != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}.")
    if given.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): {what} of shape {tuple(given.shape)} do not fit data of shape {tuple(data.shape)}; expected "
            "the same sizes before the last dimension."
        )
    if offsets is not None:
        if not unsafe and (offsets.diff(dim=-1) < 0).any():
            raise RuntimeError("segment_reduce(): Expected offsets not to decrease when !unsafe.")
        return offsets[..., 1:], offsets[..., :1]
    if not unsafe:
        if given.numel() and (given < 0).any():
            raise RuntimeError("segment_reduce(): lengths contains negative value!")
        if not (given.sum(-1) == data.size(axis)).all():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    return given.cumsum(-1), given.new_zeros((*given.shape[:-1], 1))


def _nans(elements):
    """Where elements are NaN, if there are any and gradients are wanted: ops of extrema and products lose theirs."""
    if not elements.requires_grad:
        return None
    wrong = elements.isnan()
    return wrong if wrong.any() else None


def _reduced(data, name, starts, ends, axis, initial):
    count, rows = ends.size(-1), ends.shape[:-1].numel()
    # The place of each element: its segment, or one after all for what lies in none.
    at = ops["arange"](data.size(axis), device=data.device)
    segment = ops["searchsorted"](ends.contiguous(), at.expand(*ends.shape[:-1], -1).contiguous(), right=True)
    segment = segment.masked_fill(at < starts, count)
    row = ops["arange"](rows, device=data.device).reshape(*ends.shape[:-1], 1)
    place = (row * (count + 1) + segment).flatten()
    elements = data.reshape(place.numel(), *data.shape[axis + 1 :])
    made = elements.new_full((rows * (count + 1), *elements.shape[1:]), _REDUCTIONS[name])
    index = place.reshape(-1, *(1,) * (elements.dim() - 1)).expand_as(elements)

    def shaped(t):
        return t.reshape(rows, count + 1, *t.shape[1:])[:, :count].reshape(*ends.shape, *t.shape[1:])

    def added(t):
        return made.new_zeros(made.shape).index_add(0, place, t)

    wrong = _nans(elements) if name in ("amax", "amin", "prod") else None
    if wrong is None:
        nans = broken = None
    else:
        nans, broken = added(elements.where(wrong, 0)), added(wrong.to(made.dtype))
    if name in ("amax", "amin"):
        found = made.scatter_reduce(0, index, elements, name, include_self=False)
        found = shaped(found if nans is None else found.where(broken == 0, nans / broken))
        if initial is None:
            return found
        # A segment without a greater element than the one that it begins with has no gradient.
        kept = (found <= initial if name == "amin" else found >= initial) | found.isnan()
        return found.where(kept, ops["full_like"](found, initial))
    if name == "prod":
        found = made.scatter_reduce(0, index, elements if wrong is None else elements.where(~wrong, 1), "prod")
        found = shaped(found if nans is None else found.where(broken == 0, found * nans))
        return found if initial is None else found * initial
    found = shaped(added(elements))
    if initial is not None:
        found = found + initial
    if name == "sum":
        return found
    sizes = shaped(elements.new_zeros(made.size(0)).index_add(0, place, elements.new_ones(place.numel())))
    sizes = sizes.reshape(*ends.shape, *(1,) * (elements.dim() - 1))
    return found / sizes if initial is None else found / sizes.clamp(min=1)
