"""Values that rank 0 has, on all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._base import Tensor, empty


@dataclass
class _Tensor:
    """The place of a tensor among values that cross as a pickle."""

    shape: tuple[int, ...]
    dtype: Any


def from_first(value: Any) -> Any:
    """Nested dicts, lists and tuples with tensors of rank 0: the others' are not looked at. Tensors cross without a pickle.

    Raises:
        ValueError: there is no process group.
    """
    from .. import broadcast, broadcast_object_list, get_rank

    here = get_rank() == 0
    tensors: list[Tensor] = []
    skeleton = [_replaced(value, lambda t: tensors.append(t) or _Tensor(tuple(t.shape), t.dtype)) if here else None]
    broadcast_object_list(skeleton, src=0)
    waiting = iter(tensors)

    def received(place):
        tensor = next(waiting).detach().cpu().contiguous() if here else empty(place.shape, dtype=place.dtype)
        broadcast(tensor, src=0)
        return tensor

    return _replaced(skeleton[0], received)


def _replaced(value, made):
    """Nested values with what is made of tensors, or of their places, in their place."""
    if isinstance(value, (Tensor, _Tensor)):
        return made(value)
    if isinstance(value, dict):
        return {k: _replaced(v, made) for k, v in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return type(value)(_replaced(v, made) for v in value)
    return value
