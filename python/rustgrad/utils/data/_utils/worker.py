"""What the worker processes of loaders use, for libraries with a loader of their own: messages, seeds, the worker's own number.

Such a library makes processes and queues by itself, and sets `_worker_info` in each.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...._absent import getattr_of
from .._worker import WorkerInfo as WorkerInfo
from .._worker import get_worker_info as get_worker_info

__all__ = ["ManagerWatchdog", "WorkerInfo", "get_worker_info"]

# What `get_worker_info` returns in a process that a library has made a worker.
_worker_info: WorkerInfo | None = None


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's message that its iterable data set has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """A message to a worker that is kept: a new pass begins."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells a worker whether the process that made it is still there."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it is."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


__getattr__ = getattr_of(__name__)
