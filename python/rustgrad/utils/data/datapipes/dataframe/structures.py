"""The batch of data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import DataChunk
from . import dataframe_wrapper as df_wrapper

__all__ = ["DataChunkDF"]


class DataChunkDF(DataChunk[Any]):
    """A batch of data frames, which iterates over their rows; `raw_iterator` yields the data frames."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.raw_iterator():
            yield from df_wrapper.iterate(frame)

    def __len__(self) -> int:
        return sum(map(df_wrapper.get_len, self.raw_iterator()))
