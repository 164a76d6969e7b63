"""`rustgrad.futures`: a value that another thread will provide."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._absent import getattr_of

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that some thread sets once and others wait for.

    Args:
        devices (list): accepted; values on a GPU need no streams to be waited for.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._inner: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the value, or an error, has been set."""
        return self._inner.done()

    def wait(self) -> T:
        """The value, once it is there; the error if one was set."""
        return self._inner.result()

    def value(self) -> T:
        """The value. RuntimeError if it is not there yet."""
        if not self.done():
            raise RuntimeError("value() can only be called after the future is completed; call wait()")
        return self._inner.result()

    def set_result(self, result: T) -> None:
        """Sets the value. RuntimeError the second time."""
        self._set(self._inner.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._set(self._inner.set_exception, result)

    def _set(self, setter, value):
        try:
            setter(value)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("Future can only be set once") from None

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls `callback(self)` once it is done, in the thread that sets it."""
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` returns, called once this one is done; of a RuntimeError if it raises."""
        made: Future[S] = Future()

        def run(_):
            try:
                made.set_result(callback(self))
            except Exception as error:
                text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                raised = RuntimeError(text)
                raised.__cause__ = error
                made.set_exception(raised)

        self._inner.add_done_callback(run)
        return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, done when all are. RuntimeError: one is None."""
    if any(f is None for f in futures):
        raise RuntimeError("Future can't be None")
    made: Future[list[Future[Any]]] = Future()
    left = len(futures)
    if not left:
        made.set_result(futures)

    def count(_: Future[Any]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all; the first error."""
    return [future.wait() for future in collect_all(futures).wait()]


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
