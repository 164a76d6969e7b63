"""Pipes that make batches and groups, and take them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import _check_unpickable_fn
from .utils import length_of

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Lists of `batch_size` samples (functional name: ``batch``).

    Args:
        datapipe (IterDataPipe): the source.
        batch_size (int): samples of a batch.
        drop_last (bool): leave out a last batch that is shorter.
        wrapper_class (type): of the batches, by default `DataChunk`, a list.

    Raises:
        AssertionError: `batch_size` is not positive.

    Example:
        >>> list(IterableWrapper(range(5)).batch(batch_size=2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        assert batch_size > 0, "Batch size is required to be larger than 0!"
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The elements of batches (functional name: ``unbatch``).

    Args:
        datapipe (IterDataPipe): the source, of lists.
        unbatch_level (int): how many levels of nested lists are taken apart; -1 for all.

    Raises:
        ValueError, IndexError (while iterating): `unbatch_level` is less than -1, or samples are nested less deep.

    Example:
        >>> list(IterableWrapper([[[0, 1], [2]], [[3]]]).unbatch(unbatch_level=2))
        [0, 1, 2, 3]
    """

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for sample in self.datapipe:
            yield from self._elements(sample, self.unbatch_level)

    def _elements(self, sample, level):
        if level == 0 or (level == -1 and not isinstance(sample, list)):
            yield sample
            return
        if not isinstance(sample, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for element in sample:
            yield from self._elements(element, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Lists of samples for which a function returns the same key (functional name: ``groupby``).

    A group is yielded when it has `group_size` samples; when the buffer is full, the largest one is, and at the end those
    that are left.

    Args:
        datapipe (IterDataPipe): the source.
        group_key_fn (callable): of a sample, its key.
        keep_key (bool): pairs of the key and the group instead.
        buffer_size (int): samples that wait for their group.
        group_size (int, optional): samples of a group, at most.
        guaranteed_group_size (int, optional): of groups that are yielded because the buffer is full, at least; by
            default `group_size`.
        drop_remaining (bool): leave out groups that are smaller then.

    Raises:
        AssertionError: a size is not positive, `group_size` is larger than the buffer or `guaranteed_group_size` than it.
        RuntimeError (while iterating): the buffer is full of groups that are smaller than guaranteed.

    Example:
        >>> list(IterableWrapper(["a.x", "b.x", "a.y"]).groupby(lambda name: name[0]))
        [['a.x', 'a.y'], ['b.x']]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[_T_co],
        group_key_fn: Callable[[_T_co], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        if group_size is not None:
            assert 0 < group_size <= buffer_size, "group_size must be > 0 and <= buffer_size"
        if guaranteed_group_size is not None:
            assert group_size is not None and 0 < guaranteed_group_size <= group_size, (
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk

    def _made(self, key, samples):
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        waiting: defaultdict[Any, list[Any]] = defaultdict(list)
        count = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            waiting[key].append(sample)
            count += 1
            if len(waiting[key]) == self.group_size:
                count -= len(waiting[key])
                yield self._made(key, waiting.pop(key))
            if count == self.max_buffer_size:
                largest = max(waiting, key=lambda key: len(waiting[key]))
                samples = waiting.pop(largest)
                count -= len(samples)
                if self.guaranteed_group_size is None or len(samples) >= self.guaranteed_group_size:
                    # PyTorch pairs this group with the key of the last sample.
                    yield self._made(largest, samples)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(samples))
        for key in tuple(waiting):
            yield self._made(key, waiting.pop(key))
