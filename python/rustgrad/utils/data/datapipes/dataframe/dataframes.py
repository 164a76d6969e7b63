"""Recording of what is done to a data frame, to do it to each data frame of a pipe.

`trace_as_dataframe` makes of a pipe of data frames an object on which columns are read, combined and set as on one of them;
iterating it reads the rows of the data frames after that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DFIterDataPipe, IterDataPipe
from .structures import DataChunkDF

__all__ = [
    "Capture",
    "CaptureDataFrame",
    "CaptureDataFrameWithDataPipeOps",
    "DataFrameTracedOps",
    "DataFrameTracer",
]


def _call(function, args, keywords):
    return function(*args, **keywords)


class Capture:
    """A value that is computed of a data frame later.

    Args:
        root (CaptureDataFrame): the data frame, which keeps the statements that were recorded.
        function (callable): of the values of `arguments`.
    """

    def __init__(self, root: Any, function: Callable[..., Any], *arguments: Any) -> None:
        self._root, self._function, self._arguments = root, function, arguments

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return Capture(self._root, getattr, self, name)

    def __getitem__(self, key: Any) -> Capture:
        return Capture(self._root, operator.getitem, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._root._statements.append(Capture(self._root, operator.setitem, self, key, value))

    def __call__(self, *args: Any, **kwargs: Any) -> Capture:
        # A statement, as it may change the data frame.
        called = Capture(self._root, _call, self, args, kwargs)
        self._root._statements.append(called)
        return called

    def apply_ops(self, dataframe: Any) -> Any:
        """The value for a data frame, to which all statements are done."""
        values = {id(self._root): dataframe}
        for statement in self._root._statements:
            _value(statement, values)
        return _value(self, values)


def _value(part, values):
    """What a part of a recorded expression is; `values` are those that are known, by the ids of captures."""
    if isinstance(part, (list, tuple)):
        return type(part)(_value(element, values) for element in part)
    if isinstance(part, dict):
        return {key: _value(element, values) for key, element in part.items()}
    if not isinstance(part, Capture):
        return part
    if id(part) not in values:
        values[id(part)] = part._function(*(_value(argument, values) for argument in part._arguments))
    return values[id(part)]


def _add_operators():
    def binary(function):
        return lambda self, other: Capture(self._root, function, self, other)

    def reflected(function):
        return lambda self, other: Capture(self._root, function, other, self)

    for name in "add sub mul truediv floordiv mod pow and or xor".split():
        function = getattr(operator, f"__{name}__")
        setattr(Capture, f"__{name}__", binary(function))
        setattr(Capture, f"__r{name}__", reflected(function))
    for name in "lt le gt ge".split():
        setattr(Capture, f"__{name}__", binary(getattr(operator, name)))


_add_operators()


class CaptureDataFrame(Capture):
    """A data frame that is not there yet."""

    def __init__(self) -> None:
        super().__init__(self, operator.pos)
        self._statements: list[Capture] = []


class CaptureDataFrameWithDataPipeOps(CaptureDataFrame):
    """One that stands for each data frame of `source_datapipe`, with the methods of a pipe."""

    source_datapipe: IterDataPipe[Any]

    def as_datapipe(self) -> IterDataPipe[Any]:
        """The pipe of the data frames after the statements."""
        return DataFrameTracedOps(self.source_datapipe, self)

    def __iter__(self) -> Iterator[Any]:
        yield from self.as_datapipe()._dataframes_as_tuples()

    def batch(self, batch_size: int = 10, drop_last: bool = False, wrapper_class: Any = DataChunkDF) -> Any:
        """Batches of rows."""
        from .datapipes import ConcatDataFramesPipe, PerRowDataFramesPipe

        frames = ConcatDataFramesPipe(PerRowDataFramesPipe(self.as_datapipe()), batch_size, drop_last)
        return frames.batch(batch_size=1, wrapper_class=wrapper_class)

    def groupby(self, group_key_fn: Callable[[Any], Any], **options: Any) -> Any:
        """Groups of rows, each a data frame of one row."""
        from .datapipes import PerRowDataFramesPipe

        return PerRowDataFramesPipe(self.as_datapipe()).groupby(group_key_fn, **options)

    def shuffle(self) -> Any:
        """The rows in random order."""
        return self.as_datapipe()._dataframes_shuffle()

    def filter(self, filter_fn: Callable[[Any], Any]) -> Any:
        """The rows for which a function of a data frame is true in the column of bools that it returns."""
        return self.as_datapipe()._dataframes_filter(filter_fn)

    def collate(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError: rows are collated in batches."""
        raise RuntimeError("Can't collate unbatched DataFrames stream")

    def __getattr__(self, name: str) -> Any:
        if name in IterDataPipe.functions:
            return getattr(self.as_datapipe(), name)
        return super().__getattr__(name)


@functional_datapipe("trace_as_dataframe")
class DataFrameTracer(CaptureDataFrameWithDataPipeOps, IterDataPipe[Any]):  # type: ignore[misc]
    """A pipe of data frames as one data frame (functional name: ``trace_as_dataframe``)."""

    def __init__(self, source_datapipe: IterDataPipe[Any]) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()


class DataFrameTracedOps(DFIterDataPipe):
    """What a recorded value is for each data frame of a pipe."""

    def __init__(self, source_datapipe: IterDataPipe[Any], output_var: Capture) -> None:
        self.source_datapipe = source_datapipe
        self.output_var = output_var

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield self.output_var.apply_ops(frame)
