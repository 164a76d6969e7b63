"""`DistributedSampler`: the part of a data set that belongs to one process of several."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

from ..._base import Generator, randperm
from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index from `rank` on, in an order that is the same in all processes.

    Args:
        dataset (Dataset): with a length.
        num_replicas (int): number of processes; by default that of the process group.
        rank (int): number of this process; by default that in the process group.
        shuffle (bool): a random order, which `seed` and `set_epoch` decide.
        seed (int): the same in all processes.
        drop_last (bool): drop indices so that all parts are of one length; otherwise some are repeated.

    Raises:
        ValueError: `rank` is out of range, or a number is left out and there is no process group.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        from ... import distributed

        if num_replicas is None:
            num_replicas = distributed.get_world_size()
        if rank is None:
            rank = distributed.get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)  # type: ignore[arg-type]
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[_T_co]:
        n = len(self.dataset)  # type: ignore[arg-type]
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if not self.drop_last and indices:
            indices = (indices * math.ceil(self.total_size / n))[: self.total_size]
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the pass, on which the order depends: call it before each one."""
        self.epoch = epoch
