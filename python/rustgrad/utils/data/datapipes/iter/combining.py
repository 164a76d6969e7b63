"""Pipes that make one stream of several: one after the other, in turn, or side by side.

Those of `splitting.py` have their PyTorch names here too, also the ones that libraries ask for with `isinstance`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from ....._own import at_home
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from .splitting import (
    DemultiplexerIterDataPipe,
    ForkerIterDataPipe,
    _ChildDataPipe,
    _DemultiplexerIterDataPipe,
    _ForkerIterDataPipe,
)
from .utils import length_of

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]

at_home(__name__, DemultiplexerIterDataPipe, ForkerIterDataPipe)
at_home(__name__, _ChildDataPipe, _DemultiplexerIterDataPipe, _ForkerIterDataPipe)

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[_T_co]):
    """The samples of several pipes, one pipe after the other (functional name: ``concat``).

    Args:
        *datapipes (IterDataPipe): at least one.

    Raises:
        ValueError, TypeError: there is none, or one is no pipe.

    Example:
        >>> list(IterableWrapper(range(2)).concat(IterableWrapper(range(3))))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[_T_co]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[_T_co]):
    """One sample of each pipe in turn, until one of them ends (functional name: ``mux``).

    Args:
        *datapipes (IterDataPipe): the sources.

    Example:
        >>> list(IterableWrapper([0, 1, 2]).mux(IterableWrapper([10, 11])))
        [0, 10, 1, 11]
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[_T_co]:
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[tuple[_T_co, ...]]):
    """Tuples of one sample of each pipe, until one of them ends (functional name: ``zip``).

    Args:
        *datapipes (IterDataPipe): the sources.

    Raises:
        TypeError: one is no pipe.

    Example:
        >>> list(IterableWrapper(range(2)).zip(IterableWrapper("abc")))
        [(0, 'a'), (1, 'b')]
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[_T_co, ...]]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)
