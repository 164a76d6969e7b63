"""Pipes that apply a function to each sample."""

from __future__ import annotations

import copy
import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..._collate import default_collate
from .._decorator import functional_datapipe
from ..dataframe import dataframe_wrapper as df_wrapper
from ..datapipe import IterDataPipe
from ..utils.common import _check_unpickable_fn, validate_input_col
from .utils import length_of

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[_T_co]):
    """Applies a function to each sample (functional name: ``map``).

    Args:
        datapipe (IterDataPipe): the source.
        fn (callable): of a sample, or of the columns `input_col`.
        input_col (column, or list or tuple of columns, optional): an index, or a key of samples that are dicts.
        output_col (column, optional): where the result goes; by default to the first of `input_col`, and the others are
            removed. -1 appends it.

    Raises:
        TypeError: `fn` is not callable.
        ValueError: it takes another number of arguments than there are columns; `output_col` without `input_col`, or several.

    Example:
        >>> list(IterableWrapper([(0, 1), (2, 3)]).map(lambda x: x * 10, input_col=1))
        [(0, 10), (2, 30)]
    """

    def __init__(
        self, datapipe: IterDataPipe[Any], fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        _check_unpickable_fn(fn)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data):
        columns, target = self.input_col, self.output_col
        if columns is None:
            return self.fn(data)
        several = isinstance(columns, (list, tuple))
        result = self.fn(*(data[c] for c in columns)) if several else self.fn(data[columns])
        out = list(data) if isinstance(data, tuple) else copy.copy(data)
        if target is None:
            first, *others = columns if several else [columns]
            out[first] = result
            for column in sorted(others, reverse=True):
                del out[column]
        elif target == -1:
            out.append(result)
        else:
            out[target] = result
        return tuple(out) if isinstance(data, tuple) else out

    def __iter__(self) -> Iterator[_T_co]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


def _collate_columns(conversion, item):
    """A batch of one data frame as a named tuple: each column made by the function that stands for it."""
    if len(item.items) > 1:
        raise RuntimeError("Only supports one DataFrame per batch")
    frame = item.items[0]
    columns = df_wrapper.get_columns(frame)
    if set(conversion) - set(columns):
        raise RuntimeError("Conversion keys mismatch")
    if not all(callable(fn) for fn in conversion.values()):
        raise RuntimeError("Collate (DF)DataPipe requires callable as dict values")
    missing = [name for name in columns if name not in conversion]
    if missing:
        raise RuntimeError(f"Collate (DF)DataPipe: no function for columns {missing}")
    values = [conversion[name](frame[name]) for name in columns]
    return namedtuple("CollateResult", map(str, columns))(*values)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe[_T_co]):
    """Makes a tensor, or a structure of tensors, of each batch (functional name: ``collate``).

    Args:
        datapipe (IterDataPipe): the source, of batches.
        conversion (callable or dict): of a batch, by default `default_collate`; for batches of data frames a function
            for each column.
        collate_fn (callable, optional): instead of `conversion`.

    Example:
        >>> list(IterableWrapper(range(4)).batch(2).collate())
        [tensor([0, 1]), tensor([2, 3])]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        conversion: Callable[..., Any] | dict[Any, Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        if collate_fn is None:
            collate_fn = conversion if callable(conversion) else functools.partial(_collate_columns, conversion)
        super().__init__(datapipe, fn=collate_fn)
