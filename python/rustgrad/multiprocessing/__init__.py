"""`rustgrad.multiprocessing`: Python's `multiprocessing`, with tensors that cross to other processes in shared memory.

Importing it registers how queues, pipes and arguments of processes pickle tensors of the CPU: their storage moves to shared
memory, and the receiver maps the same memory. Tensors on a GPU are sent as copies.
"""

from __future__ import annotations

import multiprocessing as _base
import threading as _threading
from multiprocessing import *  # noqa: F403

from .._absent import getattr_of
from . import reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from .strategy import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy

__all__ = [
    *(name for name in _base.__all__ if name != "reducer"),  # type: ignore[attr-defined]
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
reductions.init_reductions()


def _set_thread_name(name: str) -> None:
    """Names the calling thread, for Python and where the system shows it."""
    _threading.current_thread().name = name


def _get_thread_name() -> str:
    """The name of the calling thread."""
    return _threading.current_thread().name


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
