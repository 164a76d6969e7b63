"""Worker threads of a `DataLoader(multiprocessing_context="thread")`: they fetch batches ahead, in order.

Samples need no pickling, tensors no shared memory, and everything that releases the GIL (decoding, reading, tensor ops)
runs in parallel with training; Python code does not.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ._worker import WorkerInfo, set_worker_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...utils.data.dataset import Dataset

_END = object()


class _Raised:
    """An exception on its way from a worker to the loader."""

    def __init__(self, error):
        self.error = error


class ThreadPool:
    """`num_workers` threads that serve numbered requests, each through its own queue.

    Args:
        make_fetch: called once in each worker with the data set; returns the function from request to batch.
        iterable (bool): every worker iterates a copy of the data set.
        limit (int): requests in flight per worker.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        make_fetch: Callable[[Any], Callable[[Any], Any]],
        num_workers: int,
        init_fn: Callable[[int], None] | None,
        seed: int,
        iterable: bool,
        limit: int,
    ) -> None:
        self.limit = limit
        self.inbox = [queue.SimpleQueue() for _ in range(num_workers)]
        self.outbox = [queue.SimpleQueue() for _ in range(num_workers)]
        self.threads = []
        for i in range(num_workers):
            own = copy.copy(dataset) if iterable else dataset
            info = WorkerInfo(i, num_workers, seed + i, own)
            args = (info, make_fetch, init_fn, self.inbox[i], self.outbox[i])
            self.threads.append(threading.Thread(target=_work, args=args, daemon=True))
            self.threads[-1].start()

    def run(self, requests: Iterator[Any], timeout: float) -> Iterator[Any]:
        """Yields the results of `requests` in order; a worker whose stream has ended is skipped from then on."""
        n = len(self.inbox)
        requests = iter(requests)
        pending = []
        alive = list(range(n))
        turn = 0

        def send():
            nonlocal turn
            if not alive:
                return
            try:
                request = next(requests)
            except StopIteration:
                return
            worker = alive[turn % len(alive)]
            turn += 1
            self.inbox[worker].put(request)
            pending.append(worker)

        for _ in range(n * self.limit):
            send()
        while pending:
            worker = pending.pop(0)
            answer = self._receive(worker, timeout)
            if answer is _END:
                if worker in alive:
                    alive.remove(worker)
                send()
                continue
            send()
            if isinstance(answer, _Raised):
                raise answer.error
            yield answer

    def _receive(self, worker, timeout):
        try:
            return self.outbox[worker].get(timeout=timeout or None)
        except queue.Empty:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None

    def shutdown(self) -> None:
        """Ends the threads after their pending requests."""
        for box in self.inbox:
            box.put(_END)


def _work(info, make_fetch, init_fn, inbox, outbox):
    set_worker_info(info)
    fetch = None
    try:
        if init_fn is not None:
            init_fn(info.id)
        fetch = make_fetch(info.dataset)
        failure = None
    except BaseException as error:
        failure = error
    while (request := inbox.get()) is not _END:
        if failure is not None:
            outbox.put(_Raised(failure))
            continue
        try:
            outbox.put(fetch(request))
        except BaseException as error:
            ended = make_fetch.of_stream and isinstance(error, StopIteration)
            outbox.put(_END if ended else _Raised(error))
