"""The pipe around any iterable: where most graphs begin."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import TypeVar

from ..datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]

_T = TypeVar("_T")


class IterableWrapperIterDataPipe(IterDataPipe[_T]):
    """The elements of an iterable.

    Args:
        iterable (iterable): an iterator can be read once.
        deepcopy (bool): each iterator reads a copy, made with its first element, so that steps that write into
            samples leave the source as it is.

    Example:
        >>> list(IterableWrapper(range(3)))
        [0, 1, 2]
    """

    def __init__(self, iterable: Iterable[_T], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[_T]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)


def length_of(datapipe: object, source: object) -> int:
    """The length of a pipe's source, with an error that names the pipe. TypeError: the source has none."""
    try:
        return len(source)  # type: ignore[arg-type]
    except TypeError:
        raise no_length(datapipe) from None


def no_length(datapipe: object) -> TypeError:
    """The error of a pipe whose length is not known."""
    return TypeError(f"{type(datapipe).__name__} instance doesn't have valid length")
