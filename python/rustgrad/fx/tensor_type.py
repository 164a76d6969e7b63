"""Types of tensors by their sizes, for annotations: `TensorType((1, 2, Dyn))`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The sizes of a tensor; `Dyn` is an unknown one. `TensorType[1, 2]` is `TensorType((1, 2))`."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.dims) == list(other.dims)

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


class _DynType:
    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def is_consistent(t1: object, t2: object) -> bool:
    """Whether some value may be of both types."""
    if t1 == t2 or t1 == Dyn or t2 == Dyn:
        return True
    same = isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.dims) == len(t2.dims)
    return same and all(is_consistent(a, b) for a, b in zip(t1.dims, t2.dims))  # type: ignore[attr-defined]


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether all values of the first type are of the second."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    same = isinstance(t1, TensorType) and isinstance(t2, TensorType) and len(t1.dims) == len(t2.dims)
    return same and all(is_more_precise(a, b) for a, b in zip(t1.dims, t2.dims))  # type: ignore[attr-defined]
