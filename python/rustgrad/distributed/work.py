"""`Work`, the handle of a collective or a message, and the thread that does a group's collectives in order."""

from __future__ import annotations

import collections
import contextlib
import datetime
import threading
from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import no_grad
from .errors import DistBackendError
from .stores import seconds

__all__ = ["Work", "Worker"]


class Work:
    """The handle of an operation with `async_op=True`.

    Args:
        task (callable, optional): what does it; None where another thread calls `finish`.
        result (list of tensors): what `result` and the future give.
    """

    def __init__(self, task: Callable[[], None] | None = None, result: Any = (), source: int = -1) -> None:
        self._task, self._result, self._source = task, list(result), source
        self._error: BaseException | None = None
        # Locked until it is done: cheaper than an event, and made for each collective.
        self._pending = threading.Lock()
        self._is_done = False
        self._futures: list[Any] = []
        if task is not None or source != -1:
            self._pending.acquire()
        else:
            self._is_done = True

    def run(self) -> None:
        """Does the task in this thread."""
        error: BaseException | None = None
        try:
            with no_grad():
                self._task()  # type: ignore[misc]
        except BaseException as raised:
            error = raised
        self.finish(error)

    def finish(self, error: BaseException | None = None) -> None:
        """Says that it is done, or has failed."""
        if self._is_done:
            return
        self._error, self._task, self._is_done = error, None, True
        self._pending.release()
        for future in self._futures:
            self._complete(future)

    def wait(self, timeout: datetime.timedelta | float | None = None) -> bool:
        """Waits until it is done: True. It raises the error where it failed, RuntimeError once a timeout is over."""
        if not self._is_done:
            limit = -1 if timeout is None else seconds(timeout)
            if not self._pending.acquire(timeout=limit if limit > 0 else -1):
                raise DistBackendError(f"Work.wait: timed out after {limit} seconds")
            self._pending.release()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Waits until it is done."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is done, or has failed."""
        return self._is_done

    def is_success(self) -> bool:
        """Whether it is done and did not fail."""
        return self._is_done and self._error is None

    def exception(self) -> BaseException | None:
        """The error where it failed."""
        return self._error

    def source_rank(self) -> int:
        """The process whose message was received, in the group."""
        return self._source

    def result(self) -> list[Any]:
        """The tensors of the result."""
        return self._result

    def get_future(self) -> Any:
        """A future of the tensors of the result."""
        from ..futures import Future

        future: Any = Future()
        self._futures.append(future)
        if self._is_done:
            self._complete(future)
        return future

    def _complete(self, future):
        # `finish` in another thread may complete it between the append and the question above.
        with contextlib.suppress(RuntimeError):
            if self._error is None:
                future.set_result(self._result)
            else:
                future.set_exception(
                    self._error if isinstance(self._error, Exception) else RuntimeError(str(self._error))
                )


class Worker:
    """Does tasks in the order in which they are given: in the thread that waits for one if it is the only one, else in its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: collections.deque[Work] = collections.deque()
        self._wake = threading.Condition()
        self._turn = threading.Lock()
        self._left = 0
        self._thread: threading.Thread | None = None
        self._ended = False

    def run(self, work: Work) -> None:
        """Does a task now, after those before it; it raises its error."""
        if threading.current_thread() is self._thread:  # A future's callback: its turn is now.
            work.run()
            work.wait()
            return
        with self._wake:
            alone = not self._left
            self._left += 1
            if alone:
                self._turn.acquire()
            else:
                self._put(work)
        if alone:
            try:
                work.run()
            finally:
                self._turn.release()
                self._one_less()
        work.wait()

    def submit(self, work: Work) -> Work:
        """Lets the thread do a task, after those before it."""
        with self._wake:
            self._left += 1
            self._put(work)
        return work

    def _put(self, work):
        if self._ended:
            self._left -= 1
            raise DistBackendError("the process group has been destroyed")
        self._queue.append(work)
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
            self._thread.start()
        self._wake.notify()

    def _one_less(self):
        with self._wake:
            self._left -= 1

    def _loop(self):
        while True:
            with self._wake:
                while not self._queue:
                    if self._ended:
                        return
                    self._wake.wait()
                work = self._queue.popleft()
            with self._turn:
                work.run()
            self._one_less()

    def end(self) -> None:
        """Ends the thread, after the tasks that it has."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)
