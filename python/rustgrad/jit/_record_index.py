"""Indexing as ops: `x[1, ..., 2:]` is selections and slices, `x[mask]` an `index`, an assignment a write to one of these."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor
from ._record import CannotRecord, Code, Recorder

__all__ = ["assign_item", "get_item"]

_END = 9223372036854775807


def get_item(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    """`x[index]`."""
    view, tensors = _viewed(r, args[0], args[1])
    if tensors is not None:
        return r.call_text("index", view, Code(_optional(r, tensors)))
    return r.call_text("alias", view)


def assign_item(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    """`x[index] = value`."""
    target, index, value = args
    view, tensors = _viewed(r, target, index)
    if not isinstance(value, Tensor):
        number = _C.tensor(value, dtype=target.dtype)
        value = Code(r.constant(number)) if tensors is not None else value
    if tensors is not None:
        return r.call_text("index_put_", view, Code(_optional(r, tensors)), value)
    if isinstance(value, Tensor):
        source: Any = value
        for _ in range(max(0, value.dim() - target[index].dim())):
            source = r.line("squeeze", source, 0)
        return r.call_text("copy_", view, source)
    return r.call_text("fill_", view, value)


def _optional(r: Recorder, tensors: list[Any]) -> str:
    return f"annotate(List[Optional[Tensor]], {r.text(tensors)})"


def _viewed(r: Recorder, x: Tensor, index: Any) -> tuple[Any, list[Any] | None]:
    """The view that numbers, slices, None and `...` of an index take, and the tensors that index it, or None."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if isinstance(index, list):
        parts = (
            [_C.tensor(index)]
            if index and not any(isinstance(v, (slice, type(None), type(...), Tensor)) for v in index)
            else list(index)
        )
    used = sum(_width(p) for p in parts)
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    view: Any = x
    axis, tensors = 0, {}
    for part in parts:
        if part is Ellipsis:
            axis += x.dim() - used
        elif part is None:
            view = r.line("unsqueeze", view, axis)
            axis += 1
        elif isinstance(part, slice):
            view = _sliced(r, view, axis, part)
            axis += 1
        elif isinstance(part, bool):
            view = r.line("unsqueeze", view, axis)
            tensors[axis] = Code(r.constant(_C.tensor([part])))
            axis += 1
        elif isinstance(part, int):
            view = r.line("select", view, axis, part)
        else:
            tensor = part if isinstance(part, Tensor) else _C.tensor(part)
            tensors[axis] = tensor
            axis += max(1, tensor.dim() if tensor.dtype in (_C.bool, _C.uint8) else 1)
    if not tensors:
        return view, None
    found: list[Any] = []
    for place in sorted(tensors):
        found += [None] * (place - len(found)) + [tensors[place]]
        width = getattr(tensors[place], "dtype", None)
        if width in (_C.bool, _C.uint8) and tensors[place].dim() > 1:
            raise_if_later(place, tensors)
    return view, found


def raise_if_later(place: int, tensors: dict[int, Any]) -> None:
    """Refuses an index in which a mask of several dimensions is followed by another tensor."""
    if any(p > place for p in tensors):
        raise CannotRecord("an index with a mask of several dimensions before another tensor")


def _width(part: Any) -> int:
    """How many dimensions a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (_C.bool, _C.uint8):
        return part.dim()
    return 1


def _sliced(r: Recorder, view: Any, axis: int, part: slice) -> Any:
    if part.start is None and part.stop is None and part.step is None:
        return view
    bounds = [_bound(b) for b in (part.start, part.stop, part.step)]
    start = 0 if bounds[0] is None else bounds[0]
    return r.line("slice", view, axis, start, _END if bounds[1] is None else bounds[1], bounds[2] or 1)


def _bound(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value
