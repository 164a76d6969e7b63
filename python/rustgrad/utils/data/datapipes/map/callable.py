"""The map-style pipe that applies a function to each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import _check_unpickable_fn

__all__ = ["MapperMapDataPipe", "default_fn"]

_T_co = TypeVar("_T_co", covariant=True)


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[_T_co]):
    """Applies a function to each sample when it is asked for (functional name: ``map``).

    Args:
        datapipe (MapDataPipe): the source.
        fn (callable): of a sample; by default the sample stays as it is.

    Raises:
        TypeError: `fn` is not callable.

    Example:
        >>> list(SequenceWrapper(range(3)).map(lambda x: x + 1))
        [1, 2, 3]
    """

    def __init__(self, datapipe: MapDataPipe[Any], fn: Callable[[Any], Any] = default_fn) -> None:
        _check_unpickable_fn(fn)
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index: Any) -> _T_co:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)
