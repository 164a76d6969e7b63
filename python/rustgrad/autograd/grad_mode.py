"""Context managers that control recording of the graph; all of them are decorators too.

A decorated generator function switches the mode only while its own body runs, so that the code
between two `next` calls keeps the caller's mode.
"""

from __future__ import annotations

import _thread
import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from .. import _C
from .._C import _set_grad_enabled, is_grad_enabled
from .._typing import Self

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _decorate_generator(make, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        step = functools.partial(next, generator)
        try:
            while True:
                with make():
                    item = step()
                try:
                    sent = yield item
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
        except StopIteration as stop:
            return stop.value

    return wrapper


def context_decorator(make: Callable[[], Any], function: Callable[P, R]) -> Callable[P, R]:
    """Wraps `function` so that each call runs inside the context manager that `make()` returns."""
    if isinstance(function, type):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
            "or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` "
            "method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    # The flag that `inspect.isgeneratorfunction` reads; importing `inspect` would cost 8 ms.
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & 0x20:
        return _decorate_generator(make, function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with make():
            return function(*args, **kwargs)

    return wrapper


class _DecoratorContextManager:
    """A base class of context managers that decorate functions: each call runs inside a copy, which `clone` makes."""

    def __call__(self, orig_func: Callable[P, R]) -> Callable[P, R]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Self:
        """Another context of the same kind and mode."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments, which works as `@mode` and `@mode()`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)


class _Mode(_NoParamDecoratorContextManager):
    """One that gives autograd's mode back."""

    def __init__(self) -> None:
        self.prev: bool = False

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _set_grad_enabled(self.prev)


class no_grad(_Mode):
    """Results computed inside do not record a graph: `requires_grad` is False even if an input has it True.

    Example::

        with rustgrad.no_grad():
            y = x * 2

        @rustgrad.no_grad()
        def evaluate(x):
            return model(x)
    """

    def __enter__(self) -> None:
        self.prev = is_grad_enabled()
        _set_grad_enabled(False)


class enable_grad(_Mode):
    """Records the graph again inside a `no_grad` block."""

    def __enter__(self) -> None:
        self.prev = is_grad_enabled()
        _set_grad_enabled(True)


class set_grad_enabled(_Mode):
    """Sets whether ops are recorded, immediately when called as a function; restored at the end of a `with` block.

    Args:
        mode (bool): whether to record.
    """

    def __new__(cls, mode: bool) -> Self:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' must be bool, not {type(mode).__name__}")
        self.prev = is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, orig_func: Callable[P, R]) -> Callable[P, R]:
        _set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __str__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> Self:
        """Another context of the same kind and mode."""
        return type(self)(self.mode)


class inference_mode(_Mode):
    """Like `no_grad`, and tensors created inside can never take part in a recorded graph.

    Args:
        mode (bool or function): whether inference mode is on; a function when used as a bare decorator.
    """

    def __new__(cls, mode: bool = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._saved = []

    def __enter__(self) -> None:
        self._saved.append((_C.is_inference_mode_enabled(), is_grad_enabled()))
        _C._set_inference_mode(self.mode)
        _set_grad_enabled(not self.mode)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        inference, grad = self._saved.pop()
        _C._set_inference_mode(inference)
        _set_grad_enabled(grad)

    def clone(self) -> Self:
        """Another context of the same kind and mode."""
        return type(self)(self.mode)


_multithreading = _thread._local()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` has set: True at first."""
    return getattr(_multithreading, "enabled", True)


class set_multithreading_enabled(_Mode):
    """Sets what `is_multithreading_enabled` answers, and inside a block only there; backward computes the same either way."""

    def __new__(cls, mode: bool) -> Self:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.prev = is_multithreading_enabled()
        self.mode = _multithreading.enabled = mode

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _multithreading.enabled = self.prev

    def clone(self) -> Self:
        """Another context of the same kind and mode."""
        return type(self)(self.mode)
