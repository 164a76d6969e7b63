"""Worker processes of a `DataLoader`, as seen by the loader: start, requests, answers in order, end.

Each worker has a connection of its own. A worker that is killed closes it, so the loader never waits for a dead one;
a loader that is killed closes it too, and the worker ends.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ._channel import Channel

# Seconds between two looks at whether the other process still lives, should its end of the connection stay open.
STATUS_INTERVAL = 5.0
# The loader's ends: a forked worker closes those of the others, or they would never see the loader's death.
_ENDS: weakref.WeakSet[Channel] = weakref.WeakSet()


class Setup(NamedTuple):
    """What a worker starts with."""

    dataset: Any
    make_fetch: Callable[[Any], Callable[[Any], Any]]
    init_fn: Callable[[int], None] | None
    num_workers: int
    # The process that the worker must not outlive; None if a fork server is in between.
    parent: int | None


class Ended:
    """The answer of a worker whose stream of an iterable data set has ended."""


class ProcessPool:
    """`num_workers` processes that serve numbered requests.

    Args:
        seed (int): the base of the workers' seeds, which they take once, before their first pass.
        make_fetch: called in each worker for every pass with the data set; the function from request to batch.
        context (str or context): a start method or a context of `multiprocessing`; None for the default one.
        limit (int): requests in flight per worker.
        timeout (float): seconds to wait for an answer; 0 means forever.
        in_order (bool): batches in the order of their requests, or as they arrive.
    """

    def __init__(
        self,
        seed: int,
        dataset: Any,
        make_fetch: Callable[[Any], Callable[[Any], Any]],
        num_workers: int,
        init_fn: Callable[[int], None] | None,
        context: Any,
        limit: int,
        timeout: float,
        in_order: bool,
    ) -> None:
        from ._process_main import work

        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.seed, self.limit, self.timeout, self.in_order = seed, limit, timeout, in_order
        self.channels: list[Channel] = []
        self.processes: list[Any] = []
        self.number = 0
        self._owner = os.getpid()
        method = context.get_start_method()
        setup = Setup(dataset, make_fetch, init_fn, num_workers, None if method == "forkserver" else os.getpid())
        try:
            for i in range(num_workers):
                ours, theirs = context.Pipe(duplex=True)
                self.channels.append(Channel(ours))
                _ENDS.add(self.channels[-1])
                others = list(_ENDS) if method == "fork" else []
                process = context.Process(target=work, args=(i, setup, theirs, others), daemon=True)
                process.start()
                theirs.close()
                self.processes.append(process)
        except BaseException:
            self.shutdown()
            raise

    # --- a pass ----------------------------------------------------------------------------------------------
    def begin(self, requests: Iterator[Any], shared_seed: int | None = None) -> None:
        """Starts a pass: new streams in the workers, whose pipes shuffle by the shared seed, and the first requests."""
        self.number += 1
        self.requests = requests
        self.alive = list(range(len(self.processes)))
        self.pending: list[int] = []
        self.turn = 0
        for i in self.alive:
            self._send(i, ("pass", self.number, (self.seed, shared_seed)))
        for _ in range(len(self.alive) * self.limit):
            self._request()

    def _send(self, worker, message):
        try:
            self.channels[worker].send(message)
        except (BrokenPipeError, ConnectionResetError):
            self._died(worker)

    def _request(self):
        if not self.alive:
            return
        try:
            request = next(self.requests)
        except StopIteration:
            return
        worker = self.alive[self.turn % len(self.alive)]
        self.turn += 1
        self.pending.append(worker)
        self._send(worker, ("request", self.number, request))

    def next(self) -> Any:
        """The next batch; StopIteration after the last one. An exception of a worker is raised here, with its traceback."""
        from ..._utils import ExceptionWrapper

        while self.pending:
            worker = self.pending[0] if self.in_order else self._first_ready()
            number, answer = self._receive(worker)
            if number != self.number:
                continue  # Of a pass that was given up.
            self.pending.remove(worker)
            if type(answer) is Ended:
                if worker in self.alive:
                    self.alive.remove(worker)
                self._request()
                continue
            self._request()
            if type(answer) is ExceptionWrapper:
                answer.reraise()
            return answer
        raise StopIteration

    def _first_ready(self):
        waiting = {self.channels[i].connection: i for i in set(self.pending)}
        end = time.monotonic() + self.timeout
        while True:
            ready = multiprocessing.connection.wait(list(waiting), self._interval(end))
            if ready:
                return waiting[ready[0]]
            for worker in waiting.values():
                self._check(worker)
            self._check_time(end)

    def _interval(self, end):
        return min(STATUS_INTERVAL, max(0, end - time.monotonic())) if self.timeout else STATUS_INTERVAL

    def _receive(self, worker):
        channel, end = self.channels[worker], time.monotonic() + self.timeout
        try:
            while not channel.connection.poll(self._interval(end)):
                self._check(worker)
                self._check_time(end)
            return channel.receive()
        except (EOFError, ConnectionResetError, BrokenPipeError):
            return self._died(worker)

    def _check_time(self, end):
        if self.timeout and time.monotonic() >= end:
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")

    def _check(self, worker):
        if not self.processes[worker].is_alive() and not self.channels[worker].connection.poll(0):
            self._died(worker)

    def _died(self, worker):
        process = self.processes[worker]
        process.join(STATUS_INTERVAL)
        code, pid = process.exitcode, process.pid
        self.shutdown()
        how = f"with exit code {code}"
        if code is not None and code < 0:
            name = signal.strsignal(-code)
            how = f"because it is killed by signal: {name}"
            how += ". It may have used too much memory." if -code == signal.SIGKILL else "."
        raise RuntimeError(f"DataLoader worker (pid(s) {pid}) exited unexpectedly {how}")

    # --- the end ---------------------------------------------------------------------------------------------
    def shutdown(self) -> None:
        """Ends the workers: each finishes its batch; one that does not within seconds is terminated."""
        if os.getpid() != self._owner:
            return  # A forked copy of the loader: the workers are not its own.
        for channel in self.channels:
            try:
                channel.connection.send_bytes(b"")
            except (OSError, ValueError):
                pass  # It has ended.
            channel.close()
        end = time.monotonic() + STATUS_INTERVAL
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join(1)
            if process.is_alive():
                process.kill()
                process.join()
        self.channels, self.processes = [], []

    def __del__(self) -> None:
        if getattr(self, "processes", None):
            self.shutdown()
