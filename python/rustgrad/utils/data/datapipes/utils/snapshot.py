"""Bringing a graph to where another one was: it is read from the start, as far as that one had come."""

from __future__ import annotations

from typing import Any

from ...graph_settings import apply_random_seed
from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe

__all__: list[str] = []


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe[Any], n_iterations: int, rng: Any = None) -> None:
    """Reads `n_iterations` samples of a pipe; the next iterator goes on after them.

    Args:
        rng (Generator, optional): source of the seeds of pipes that shuffle.

    Raises:
        RuntimeError: the pipe was restored and not read since, or it has fewer samples.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph "
            "if your graph has not been restored."
        )
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration as error:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from error
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
