"""The pipe that leaves samples out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..dataframe import dataframe_wrapper as df_wrapper
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[_T_co]):
    """The samples for which a function returns True (functional name: ``filter``).

    Args:
        datapipe (IterDataPipe): the source.
        filter_fn (callable): of a sample, or of the columns `input_col`; of a data frame it returns a column of bools.
        input_col (column, or list or tuple of columns, optional): an index, or a key of samples that are dicts.

    Raises:
        TypeError, ValueError: `filter_fn` is not callable, or takes another number of arguments.
        ValueError (while iterating): it returns no bool.

    Example:
        >>> list(IterableWrapper(range(5)).filter(lambda x: x % 2 == 0))
        [0, 2, 4]
    """

    def __init__(self, datapipe: IterDataPipe[_T_co], filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        _check_unpickable_fn(filter_fn)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data):
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*(data[c] for c in self.input_col))
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator[_T_co]:
        for data in self.datapipe:
            keep = self._apply_filter_fn(data)
            if df_wrapper.is_column(keep):
                rows = [df_wrapper.get_item(data, i) for i, keeps in enumerate(df_wrapper.iterate(keep)) if keeps]
                if rows:
                    yield df_wrapper.concat(rows)
            elif not isinstance(keep, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(keep))
            elif keep:
                yield data
            else:
                StreamWrapper.close_streams(data)
