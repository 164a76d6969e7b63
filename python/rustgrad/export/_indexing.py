"""`x[...]` and `x[...] = v` as ops of ATen."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor

__all__ = ["get_item", "set_item"]

_END = 2**63 - 1


def get_item(r: Any, self: Tensor, index: Any) -> Tensor:
    """`self[index]`."""
    value, tensors = _views(r, self, index)
    if tensors is None:
        if value is self:
            whole = isinstance(index, slice) and self.dim() > 0
            return r("slice", self, 0, 0, _END) if whole else r("alias", self)
        return value
    return r("index", value, tensors)


def set_item(r: Any, self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    if isinstance(index, Tensor) and index.dtype == _C.bool and not isinstance(value, Tensor):
        if index.shape == self.shape:
            r("masked_fill_", self, index, value)
            return
    if index is Ellipsis or index == slice(None) if isinstance(index, slice) or index is Ellipsis else False:
        target, tensors = self, None
    else:
        target, tensors = _views(r, self, index)
    if tensors is None:
        _fill(r, target, value)
        return
    if not isinstance(value, Tensor):
        given = [i for i, t in enumerate(tensors) if t is not None]
        if len(given) == 1 and tensors[given[0]].dtype != _C.bool and tensors[given[0]].dim() <= 1:
            r("index_fill_", target, given[0], tensors[given[0]], value)
            return
        value = r.constant_of(value, target) if hasattr(r, "constant_of") else _number(r, value, target)
    elif value.dtype != target.dtype:
        value = r("type_as", value, target)
    r("index_put_", target, tensors, value)


def _number(r: Any, value: Any, target: Tensor) -> Tensor:
    return r("full", [], value, dtype=target.dtype, device=target.device)


def _fill(r: Any, target: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        r("fill_", target, value)
        return
    extra = value.dim() - target.dim()
    if extra > 0:
        value = r("view", value, list(value.shape)[extra:])
    if tuple(value.shape) != tuple(target.shape) and value.dim():
        shape = target.shape
        value = r("expand", value, list(shape))
    r("copy_", target, value)


def _views(r: Any, self: Tensor, index: Any) -> tuple[Tensor, list[Tensor | None] | None]:
    """What the views of an index give, and the tensors of it by dimension, which come last."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [_part(r, p, self) for p in parts]
    taken = sum(_dims(p) for p in parts)
    if any(p is Ellipsis for p in parts):
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts[at : at + 1] = [_Skip()] * (self.dim() - taken)
    if taken > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    value, at, tensors = self, 0, {}
    for p in parts:
        if p is None:
            value, at = r("unsqueeze", value, at), at + 1
        elif isinstance(p, bool):
            value = r("unsqueeze", value, at)
            tensors[at] = r("zeros", [1 if p else 0], dtype=_C.int64, device=self.device)
            at += 1
        elif isinstance(p, slice):
            value, at = _slice(r, value, at, p), at + 1
        elif isinstance(p, Tensor):
            tensors[at] = p
            at += max(_dims(p), 0)
        elif isinstance(p, int):
            value = r("select", value, at, p)
        else:
            at += 1
    if not tensors:
        return value, None
    return value, [tensors.get(i) for i in range(max(tensors) + 1)]


class _Skip:
    """A dimension that an ellipsis stands for."""


def _part(r: Any, part: Any, self: Tensor) -> Any:
    if isinstance(part, (list, range)) or (isinstance(part, tuple)):
        return r("lift_fresh_copy", _C.tensor(list(part), device=self.device))
    return part


def _dims(part: Any) -> int:
    """How many dimensions of the tensor a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (_C.bool, _C.uint8):
        return part.dim()
    return 1


def _slice(r: Any, value: Tensor, at: int, part: slice) -> Tensor:
    start, stop, step = part.start, part.stop, part.step
    if start is None and stop is None and step in (None, 1):
        # PyTorch leaves out whole dimensions where others are indexed.
        return value
    start, stop, step = (r.number(v) if isinstance(v, Tensor) else v for v in (start, stop, step))
    return r(
        "slice", value, at, 0 if start is None else start, _END if stop is None else stop, 1 if step is None else step
    )
