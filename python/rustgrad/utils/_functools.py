"""Results that are kept: of methods in their objects, and of functions that a thread may compute ahead."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["cache_method", "prefetchable_cache"]


def cache_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of methods: the result for the same positional arguments is computed once for each object, and kept in it."""
    kept = "_cache_method_" + f.__name__

    @functools.wraps(f)
    def wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise AssertionError("cache_method does not accept keyword arguments")
        results = self.__dict__.setdefault(kept, {}) if hasattr(self, "__dict__") else getattr(self, kept)
        if args not in results:
            results[args] = f(self, *args)
        return results[args]

    return wrap


class _Cached:
    """A function without arguments whose result is computed once, perhaps by a thread."""

    def __init__(self, func: Callable[[], Any]) -> None:
        functools.update_wrapper(self, func)
        self._func, self._lock = func, threading.Lock()
        self._value: tuple[Any, ...] = ()
        self._future: Future[Any] | None = None

    def __call__(self) -> Any:
        with self._lock:
            if not self._value:
                future, self._future = self._future, None
                self._value = (future.result() if future else self._func(),)
            return self._value[0]

    def set(self, value: Any) -> None:
        """Gives the result. RuntimeError if there is one."""
        with self._lock:
            if self._value:
                raise RuntimeError("prefetchable_cache value already set")
            self._value = (value,)

    def clear(self) -> None:
        """Forgets the result."""
        with self._lock:
            self._value, self._future = (), None

    def prefetch(self) -> None:
        """Starts a thread that computes the result."""
        with self._lock:
            if not self._value and self._future is None:
                self._future = _threads().submit(self._func)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2)


def prefetchable_cache(func: Callable[[], Any]) -> Any:
    """`functools.cache` of a function without arguments, with `prefetch()`, `set(value)` and `clear()`."""
    return _Cached(func)
