"""The signals of loaders with worker processes, as names: nothing is installed here, a loader asks whether its workers live.

Libraries with a loader of their own call these functions beside PyTorch's queues and processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

__all__: list[str] = []

IS_WINDOWS = os.name == "nt"
_workers: dict[int, tuple[int, ...]] = {}


def _set_worker_signal_handlers() -> None:
    """No effect: a worker that dies of a signal is seen to be dead."""


def _set_SIGCHLD_handler() -> None:
    """No effect; `_error_if_any_worker_fails` is what a handler would call."""


def _set_worker_pids(loader: int, pids: Iterable[int]) -> None:
    """Notes the processes of a loader, by its `id`."""
    _workers[loader] = tuple(pids)


def _remove_worker_pids(loader: int) -> None:
    """Forgets them."""
    _workers.pop(loader, None)


def _error_if_any_worker_fails() -> None:
    """Raises RuntimeError if a noted process has ended with an error; it stays there for its parent to be waited for."""
    if IS_WINDOWS:
        return
    for pid in (pid for pids in _workers.values() for pid in pids):
        try:
            end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            continue
        if end is None or (end.si_code == os.CLD_EXITED and end.si_status == 0):
            continue
        how = f"exited unexpectedly with exit code {end.si_status}"
        if end.si_code != os.CLD_EXITED:
            how = f"is killed by signal: {end.si_status}"
        raise RuntimeError(f"DataLoader worker (pid {pid}) {how}.")
