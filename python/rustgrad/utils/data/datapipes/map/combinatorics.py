"""The pipe that shuffles a map-style one: a stream, as an order has no indices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeVar

from ...sampler import random_seed
from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


class ShufflerIterDataPipe(IterDataPipe[_T_co]):
    """The samples of a map-style pipe in random order, as a stream (functional name: ``shuffle``).

    Args:
        datapipe (MapDataPipe): the source.
        indices (list, optional): what it is asked for; by default 0, 1, ... up to its length.

    Example:
        >>> sorted(SequenceWrapper(range(3)).shuffle())
        [0, 1, 2]
    """

    def __init__(self, datapipe: MapDataPipe[_T_co], *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices: list[Any] = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        # Those that are left, the next one at the end.
        self._shuffled_indices = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe[_T_co]:
        """Turns shuffling on or off; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe[_T_co]:
        """Sets the seed of the next iterator; those after it draw one from the default generator. Returns the pipe."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[_T_co]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        if self._enabled:
            self._rng.seed(random_seed() if self._seed is None else self._seed)
            self._seed = None
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)


# The decorator would make it a method of streams, as it is one.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
