"""Map-style pipes that make one of several."""

from __future__ import annotations

from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


def _checked(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[_T_co]):
    """The samples of several pipes, one pipe after the other, by indices from 0 (functional name: ``concat``).

    Args:
        *datapipes (MapDataPipe): at least one.

    Raises:
        ValueError, TypeError: there is none, or one is no map-style pipe.
        IndexError (of an index): it is out of range.

    Example:
        >>> list(SequenceWrapper(range(2)).concat(SequenceWrapper(range(3))))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> _T_co:
        rest = index
        for pipe in self.datapipes:
            if rest < len(pipe):
                return pipe[rest]
            rest -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[tuple[_T_co, ...]]):
    """Tuples of the samples of several pipes at the same index (functional name: ``zip``).

    Args:
        *datapipes (MapDataPipe): at least one.

    Raises:
        ValueError, TypeError: there is none, or one is no map-style pipe.
        IndexError (of an index): it is out of range for one of them.

    Example:
        >>> list(SequenceWrapper(range(2)).zip(SequenceWrapper("abc")))
        [(0, 'a'), (1, 'b')]
    """

    def __init__(self, *datapipes: MapDataPipe[_T_co]) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> tuple[_T_co, ...]:
        row = []
        for pipe in self.datapipes:
            try:
                row.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(row)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)
