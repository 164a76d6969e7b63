"""What pipes ask of data frames: those of pandas if it is installed, or of another library through `set_df_wrapper`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

__all__ = [
    "concat",
    "create_dataframe",
    "get_columns",
    "get_df_wrapper",
    "get_item",
    "get_len",
    "is_column",
    "is_dataframe",
    "iterate",
    "set_df_wrapper",
]


class PandasWrapper:
    """Data frames of pandas, which is imported when one is made: before, nothing is a data frame."""

    @classmethod
    def create_dataframe(cls, data: Any, columns: Any) -> Any:
        if importlib.util.find_spec("pandas") is None:
            raise RuntimeError("DataFrames prototype requires pandas to function")
        return importlib.import_module("pandas").DataFrame(data, columns=columns)

    @staticmethod
    def _is(kind, data):
        pandas = sys.modules.get("pandas")
        return pandas is not None and isinstance(data, getattr(pandas, kind))

    @classmethod
    def is_dataframe(cls, data: Any) -> bool:
        return cls._is("DataFrame", data)

    @classmethod
    def is_column(cls, data: Any) -> bool:
        return cls._is("Series", data)

    @classmethod
    def iterate(cls, data: Any) -> Iterator[Any]:
        """The values of a column, or the rows of a data frame as named tuples."""
        return data.itertuples(index=False) if cls.is_dataframe(data) else iter(data)

    @classmethod
    def concat(cls, buffer: Any) -> Any:
        return importlib.import_module("pandas").concat(buffer)

    @classmethod
    def get_item(cls, data: Any, idx: int) -> Any:
        """The data frame of one row."""
        return data[idx : idx + 1]

    @classmethod
    def get_len(cls, df: Any) -> int:
        return len(df.index)

    @classmethod
    def get_columns(cls, df: Any) -> list[Any]:
        return list(df.columns.values.tolist())


_wrapper: Any = PandasWrapper


def get_df_wrapper() -> Any:
    """What answers for data frames, by default `PandasWrapper`."""
    return _wrapper


def set_df_wrapper(wrapper: Any) -> None:
    """Sets it: a class with the methods of `PandasWrapper`."""
    global _wrapper
    _wrapper = wrapper


def create_dataframe(data: Any, columns: Any = None) -> Any:
    """A data frame of rows."""
    return _wrapper.create_dataframe(data, columns)


def is_dataframe(data: Any) -> bool:
    """Whether it is a data frame."""
    return _wrapper.is_dataframe(data)


def get_columns(data: Any) -> list[Any]:
    """The names of a data frame's columns."""
    return _wrapper.get_columns(data)


def is_column(data: Any) -> bool:
    """Whether it is a column."""
    return _wrapper.is_column(data)


def concat(buffer: Any) -> Any:
    """The rows of several data frames."""
    return _wrapper.concat(buffer)


def iterate(data: Any) -> Iterator[Any]:
    """The values of a column, or the rows of a data frame."""
    return _wrapper.iterate(data)


def get_item(data: Any, idx: int) -> Any:
    """The data frame of one row."""
    return _wrapper.get_item(data, idx)


def get_len(df: Any) -> int:
    """The number of rows."""
    return _wrapper.get_len(df)
