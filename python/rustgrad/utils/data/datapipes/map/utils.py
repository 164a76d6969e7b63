"""The map-style pipe around any sequence or dict: where such graphs begin."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..datapipe import MapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]

_T = TypeVar("_T")


class SequenceWrapperMapDataPipe(MapDataPipe[_T]):
    """The elements of a sequence, or the values of a dict.

    Args:
        sequence (sequence or dict): with `__getitem__` and `__len__`.
        deepcopy (bool): keep a copy, so that steps that write into samples leave the source as it is.

    Example:
        >>> list(SequenceWrapper(range(3)))
        [0, 1, 2]
    """

    def __init__(self, sequence: Sequence[_T] | Mapping[Any, _T], deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> _T:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)
