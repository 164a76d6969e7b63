"""What a `DataLoader` does with a pipe beyond other data sets.

`shuffle=` turns the pipes that shuffle on and off. They get seeds from one number, drawn for each pass and known to all
workers, so that those shuffle alike and each then takes its part of the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..._base import Generator
from ._worker import get_worker_info
from .dataset import IterableDataset
from .sampler import random_seed


def is_pipe(dataset: Any) -> bool:
    """Whether a data set is a pipe; nothing is while no program has imported them."""
    module = sys.modules.get(f"{__package__}.datapipes.datapipe")
    return module is not None and isinstance(dataset, (module.IterDataPipe, module.MapDataPipe))


def prepare(dataset: Any, shuffle: bool | None) -> Any:
    """The pipe of a loader: with the settings of `shuffle` if it is a stream, and in a wrapper that can be pickled."""
    from .datapipes.datapipe import (
        IterDataPipe,
        _IterDataPipeSerializationWrapper,
        _MapDataPipeSerializationWrapper,
    )
    from .graph_settings import apply_shuffle_settings

    if isinstance(dataset, IterDataPipe):
        return _IterDataPipeSerializationWrapper(apply_shuffle_settings(dataset, shuffle))
    return _MapDataPipeSerializationWrapper(dataset)


def draw_shared_seed(dataset: Any, generator: Generator | None) -> int | None:
    """Begins a pass: the number from which all workers derive their pipes' seeds; None if the data set is no stream of pipes."""
    if not is_pipe(dataset) or not isinstance(dataset, IterableDataset):
        return None
    seed = random_seed(generator)
    apply_shared_seed(dataset, seed)
    return seed


def apply_shared_seed(dataset: Any, seed: int) -> None:
    """Gives the pipes that shuffle their seeds."""
    from .graph_settings import apply_random_seed

    apply_random_seed(dataset, Generator().manual_seed(seed))


def shard(dataset: Any, count: int = 1, number: int = 0) -> None:
    """Tells the pipes that divide their samples that this is worker `number` of `count`; other data sets have none."""
    if is_pipe(dataset):
        from .graph_settings import apply_sharding

        apply_sharding(dataset, count, number)


class ShardingInit:
    """The `worker_init_fn` of a loader of pipes: it divides the samples among the workers, then calls the program's."""

    def __init__(self, init_fn: Callable[[int], None] | None) -> None:
        self.init_fn = init_fn

    def __call__(self, worker_id: int) -> None:
        info = get_worker_info()
        assert info is not None
        shard(info.dataset, info.num_workers, worker_id)
        if self.init_fn is not None:
            self.init_fn(worker_id)
