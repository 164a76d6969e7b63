"""The pipe that divides a stream among workers and processes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TypeVar

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from .utils import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


class SHARDING_PRIORITIES(IntEnum):
    """Groups of instances, in the order in which they divide: DEFAULT alone, or the other ones."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[_T_co]):
    """A pipe whose `apply_sharding` takes a group."""

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: int = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe[_T_co]):
    """Every n-th sample, where n is the number of workers (functional name: ``sharding_filter``).

    A `DataLoader` tells each of its workers which samples are its own; what comes before this pipe runs in all of them.

    Args:
        source_datapipe (IterDataPipe): the source.
        sharding_group_filter (int, optional): divide among the instances of this group only.

    Example:
        >>> pipe = IterableWrapper(range(5)).sharding_filter()
        >>> pipe.apply_sharding(2, 1)
        >>> list(pipe)
        [1, 3]
    """

    def __init__(self, source_datapipe: IterDataPipe[_T_co], sharding_group_filter: int | None = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: int = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        """Sets how many instances there are in a group, and which of them this one is.

        Raises:
            ValueError: `instance_id` is not less than `num_of_instances`.
            RuntimeError: the group DEFAULT together with other ones.
        """
        default = SHARDING_PRIORITIES.DEFAULT
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        if self.groups and (default in self.groups) != (sharding_group == default):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups):
            if self.sharding_group_filter in (None, group):
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[_T_co]:
        for i, sample in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
