"""Contexts as decorators, for contexts of programs: `context_decorator` and base classes like that of `no_grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import context_decorator as _decorate

__all__: list[str] = []


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls run inside a context: a context manager, or what `ctx()` makes for each call.

    Raises:
        TypeError: both would do: a context manager that can be called.
    """
    if callable(ctx) and hasattr(type(ctx), "__enter__"):
        raise TypeError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous which "
            "interface to use. If you intended to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context manager directly, rewrite your call as "
            "context_decorator(lambda: ctx)"
        )
    return _decorate(ctx if callable(ctx) else lambda: ctx, func)


class _DecoratorContextManager:
    """A base class of contexts that decorate: each call runs inside a copy, which `clone` makes."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return _decorate(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another context of the same kind."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments, which also decorates without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
