"""`spawn` and `start_processes`: one function in several processes, whose errors arrive with their tracebacks."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process has failed: its number and process id."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the message is its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code other than 0."""

    __slots__ = ["exit_code", "signal_name"]

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i, args, error_file, parent):
    try:
        _end_with(parent)
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # The parent has got it too.
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


def _end_with(parent):
    """Lets Linux interrupt this process when its parent dies; RuntimeError if that has happened already."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGINT)
    if os.getppid() != parent and multiprocessing.get_start_method(allow_none=True) != "forkserver":
        raise KeyboardInterrupt


class ProcessContext:
    """The processes of `start_processes(..., join=False)`: `join()` waits for them and raises their errors."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def _join_procs_with_timeout(self, timeout):
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one process has failed, all have ended, or `timeout` seconds have passed; whether all have ended.

        Args:
            timeout (float): seconds; None waits without limit.
            grace_period (float): seconds that the others have to end by themselves after one has failed.

        Raises:
            ProcessRaisedException, ProcessExitedException: a process has failed; the others have been ended.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            if not self.sentinels:
                self._forget_files()
            return not self.sentinels
        self._end_others(grace_period)
        self._raise(failed)
        return False

    def _end_others(self, grace_period):
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._join_procs_with_timeout(30)

    def _forget_files(self):
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)

    def _raise(self, i):
        process, name = self.processes[i], self.error_files[i]
        text = None
        if os.path.exists(name) and os.path.getsize(name):
            with open(name, "rb") as file:
                text = pickle.load(file)
        self._forget_files()
        if text is not None:
            message = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, i, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)
        raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)


class SpawnContext(ProcessContext):
    """A `ProcessContext` of spawned processes: the name of older programs."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> ProcessContext | None:
    """Calls `fn(i, *args)` in `nprocs` processes, for `i` from 0 on.

    Args:
        fn (callable): at the top level of a module, so that it can be pickled (unless the processes are forked).
        join (bool): wait for the processes; otherwise return their `ProcessContext`.
        daemon (bool): the processes end with this one.
        start_method (str): "spawn", "fork" or "forkserver".

    Raises:
        ProcessRaisedException, ProcessExitedException: a process has failed; the others have been ended.
        NotImplementedError: `numa_options` is given.
    """
    if numa_options is not None:
        raise NotImplementedError("start_processes: numa_options is not supported; expected None. Use numactl.")
    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        handle, name = tempfile.mkstemp(prefix="rustgrad-errorfile-")
        os.close(handle)
        process = context.Process(target=_run, args=(fn, i, args, name, os.getpid()), daemon=daemon)
        process.start()
        error_files.append(name)
        processes.append(process)
    made = ProcessContext(processes, error_files)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with the start method "spawn"; see there."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n"
            "\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
