"""Pipes of data frames: made of rows, cut into rows, joined, shuffled, filtered."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from ...sampler import random_seed
from .._decorator import functional_datapipe
from ..datapipe import DFIterDataPipe, IterDataPipe
from . import dataframe_wrapper as df_wrapper

__all__ = [
    "ConcatDataFramesPipe",
    "DataFramesAsTuplesPipe",
    "ExampleAggregateAsDataFrames",
    "FilterDataFramesPipe",
    "PerRowDataFramesPipe",
    "ShuffleDataFramesPipe",
]


def _rows(frame):
    return [df_wrapper.get_item(frame, i) for i in range(df_wrapper.get_len(frame))]


def _joined(rows, size):
    """Data frames of `size` rows of a stream of rows; the last one may be shorter."""
    buffer = []
    for row in rows:
        buffer.append(row)
        if len(buffer) == size:
            yield df_wrapper.concat(buffer)
            buffer = []
    if buffer:
        yield df_wrapper.concat(buffer)


@functional_datapipe("_dataframes_as_tuples")
class DataFramesAsTuplesPipe(IterDataPipe[Any]):
    """The rows, as named tuples."""

    def __init__(self, source_datapipe: IterDataPipe[Any]) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield from df_wrapper.iterate(frame)


@functional_datapipe("_dataframes_per_row", enable_df_api_tracing=True)
class PerRowDataFramesPipe(DFIterDataPipe):
    """A data frame for each row."""

    def __init__(self, source_datapipe: IterDataPipe[Any]) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield from _rows(frame)


@functional_datapipe("_dataframes_concat", enable_df_api_tracing=True)
class ConcatDataFramesPipe(DFIterDataPipe):
    """Data frames of `batch` others, without a last one of fewer if `drop_last`."""

    def __init__(self, source_datapipe: IterDataPipe[Any], batch: int = 3, drop_last: bool = False) -> None:
        self.source_datapipe = source_datapipe
        self.n_batch = batch
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[Any]:
        source = self.source_datapipe
        for frames in source.batch(self.n_batch, drop_last=self.drop_last, wrapper_class=list):
            yield df_wrapper.concat(frames)


@functional_datapipe("_dataframes_shuffle", enable_df_api_tracing=True)
class ShuffleDataFramesPipe(DFIterDataPipe):
    """The rows of all data frames in random order, in data frames of the size of the first."""

    def __init__(self, source_datapipe: IterDataPipe[Any]) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        frames = list(self.source_datapipe)
        rows = [row for frame in frames for row in _rows(frame)]
        random.Random(random_seed()).shuffle(rows)
        yield from _joined(rows, df_wrapper.get_len(frames[0]) if frames else 1)


@functional_datapipe("_dataframes_filter", enable_df_api_tracing=True)
class FilterDataFramesPipe(DFIterDataPipe):
    """The rows for which a function of a data frame is true, in data frames of the size of the first."""

    def __init__(self, source_datapipe: IterDataPipe[Any], filter_fn: Callable[[Any], Any]) -> None:
        self.source_datapipe = source_datapipe
        self.filter_fn = filter_fn

    def __iter__(self) -> Iterator[Any]:
        size = None
        kept: list[Any] = []
        for frame in self.source_datapipe:
            size = size or df_wrapper.get_len(frame)
            keeps = df_wrapper.iterate(self.filter_fn(frame))
            kept += [row for row, keep in zip(_rows(frame), keeps, strict=True) if keep]
            whole = len(kept) - len(kept) % size if size else 0
            yield from _joined(kept[:whole], size)
            del kept[:whole]
        yield from _joined(kept, size)


@functional_datapipe("_to_dataframes_pipe", enable_df_api_tracing=True)
class ExampleAggregateAsDataFrames(DFIterDataPipe):
    """Data frames of `dataframe_size` samples, each a row, or the value of its only column."""

    def __init__(self, source_datapipe: IterDataPipe[Any], dataframe_size: int = 10, columns: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.columns = columns
        self.dataframe_size = dataframe_size

    def __iter__(self) -> Iterator[Any]:
        for samples in self.source_datapipe.batch(self.dataframe_size, wrapper_class=list):
            rows = [list(sample) if hasattr(sample, "__iter__") else [sample] for sample in samples]
            yield df_wrapper.create_dataframe(rows, columns=self.columns)
