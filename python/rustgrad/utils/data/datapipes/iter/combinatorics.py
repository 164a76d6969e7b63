"""Pipes that reorder samples."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any, TypeVar

from ...sampler import Sampler, SequentialSampler, random_seed
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from .utils import length_of

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


class SamplerIterDataPipe(IterDataPipe[_T_co]):
    """What a sampler of the source yields.

    Args:
        datapipe (IterDataPipe): the source, with a length.
        sampler (type): a class of samplers, called with `data_source` and the arguments below.
        sampler_args, sampler_kwargs: its arguments.

    Raises:
        AssertionError: the source has no length.

    Example:
        >>> list(Sampler(IterableWrapper(range(3))))
        [0, 1, 2]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        sampler: type[Sampler[Any]] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        assert isinstance(datapipe, Sized), "Sampler class requires input datapipe implemented `__len__`"
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[_T_co]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[_T_co]):
    """Shuffles with a buffer: each sample is drawn from the next `buffer_size` ones (functional name: ``shuffle``).

    In a `DataLoader`, `shuffle=` turns it on and off, and all workers shuffle alike.

    Args:
        datapipe (IterDataPipe): the source.
        buffer_size (int): 1 leaves the order as it is, the length of the source or more makes all orders alike.
        unbatch_level (int): samples are batches nested so deep, which are taken apart first.

    Raises:
        AssertionError: `buffer_size` is not positive.

    Example:
        >>> sorted(IterableWrapper(range(3)).shuffle())
        [0, 1, 2]
    """

    def __init__(self, datapipe: IterDataPipe[_T_co], *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        assert buffer_size > 0, "buffer_size should be larger than 0"
        self._buffer: list[_T_co] = []
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

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
            yield from self.datapipe
            return
        for sample in self.datapipe:
            if len(self._buffer) == self.buffer_size:
                i = self._rng.randint(0, len(self._buffer) - 1)
                drawn, self._buffer[i] = self._buffer[i], sample
                yield drawn
            else:
                self._buffer.append(sample)
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            self._rng.seed(random_seed() if self._seed is None else self._seed)
            self._seed = None
