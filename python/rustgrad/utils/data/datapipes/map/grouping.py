"""The map-style pipe that makes batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe

__all__ = ["BatcherMapDataPipe"]

_T = TypeVar("_T")


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Lists of `batch_size` samples at following indices (functional name: ``batch``).

    Args:
        datapipe (MapDataPipe): the source, with indices from 0.
        batch_size (int): samples of a batch.
        drop_last (bool): leave out a last batch that is shorter.
        wrapper_class (type): of the batches, by default `DataChunk`, a list.

    Raises:
        AssertionError: `batch_size` is not positive.
        IndexError (of an index): there is no such batch.

    Example:
        >>> list(SequenceWrapper(range(5)).batch(batch_size=2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        datapipe: MapDataPipe[_T],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        assert batch_size > 0, "Batch size is required to be larger than 0!"
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        start = index * self.batch_size
        end = min(start + self.batch_size, len(self.datapipe))
        if start >= end or (self.drop_last and end - start < self.batch_size):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[i] for i in range(start, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
