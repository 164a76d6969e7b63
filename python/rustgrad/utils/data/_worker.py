"""What a worker of a `DataLoader` knows about itself."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

# Batches of more bytes cross to the loader in shared memory: up to this size a copy through the pipe is faster.
SHARED_FROM = 32 << 10
_local = threading.local()


class WorkerInfo(NamedTuple):
    """What `get_worker_info` returns: the worker's number, the number of workers, its seed and its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


# Whether this process is a worker: what it collates is sent on.
_sends = False


def set_sends() -> None:
    """Marks this process as one that sends its batches."""
    global _sends
    _sends = True


def sends() -> bool:
    """Whether this process sends its batches to another one."""
    return _sends


def get_worker_info() -> WorkerInfo | None:
    """The `WorkerInfo` of the calling worker; None in the main process."""
    own: WorkerInfo | None = getattr(_local, "info", None)
    if own is None and (names := sys.modules.get(f"{__package__}._utils.worker")) is not None:
        own = names._worker_info
    return own


def set_worker_info(info: WorkerInfo) -> None:
    """Makes the calling thread a worker."""
    _local.info = info
