"""Settings of all pipes of a graph: who reads which part, whether and from which seeds they shuffle."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, TypeVar

from ..._base import Generator
from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipe, DataPipeGraph, traverse_dps
from .sampler import random_seed

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]

_DataPipe = TypeVar("_DataPipe", bound=DataPipe)


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """The pipes of a graph, each once."""
    found: dict[int, DataPipe] = {}

    def collect(part):
        for key, (pipe, below) in part.items():
            found.setdefault(key, pipe)
            collect(below)

    collect(graph)
    return list(found.values())


def _has_methods(datapipe, *names):
    return all(inspect.ismethod(getattr(datapipe, name, None)) for name in names)


def apply_sharding(
    datapipe: _DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: int = SHARDING_PRIORITIES.DEFAULT,
) -> _DataPipe:
    """Tells the pipes that divide their samples, those with a method `apply_sharding`, how many instances there are and
    which this one is. Returns the pipe.

    Raises:
        RuntimeError: one of them is below another one.
    """

    def apply(graph, above):
        for pipe, below in graph.values():
            divides = _has_methods(pipe, "apply_sharding")
            if divides:
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {above} while trying to apply to {pipe}"
                    )
                group = (sharding_group,) if isinstance(pipe, _ShardingIterDataPipe) else ()
                pipe.apply_sharding(num_of_instances, instance_id, *group)
            apply(below, pipe if divides else above)

    apply(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: _DataPipe, shuffle: bool | None = None) -> _DataPipe:
    """Turns on or off the pipes that shuffle, those with methods `set_shuffle` and `set_seed`; None leaves them as they are.

    Returns the pipe, or a `Shuffler` after it where none shuffles and one is to, with a warning.
    """
    if shuffle is None:
        return datapipe
    pipes: list[Any] = get_all_graph_pipes(traverse_dps(datapipe))
    shufflers = [pipe for pipe in pipes if _has_methods(pipe, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
            "Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: _DataPipe, rng: Generator | None) -> _DataPipe:
    """`apply_random_seed`, by its former name."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. "
        "Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: _DataPipe, rng: Generator | None) -> _DataPipe:
    """Draws a seed for each pipe of the graph that has a method `set_seed`. Returns the pipe."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has_methods(pipe, "set_seed"):
            pipe.set_seed(random_seed(rng))
    return datapipe
