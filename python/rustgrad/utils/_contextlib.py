"""Contexts as decorators, for contexts of programs: `context_decorator` and the base classes of `no_grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import _DecoratorContextManager, _NoParamDecoratorContextManager  # noqa: F401
from ..autograd.grad_mode import context_decorator as _decorate

__all__: list[str] = []


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls run inside a context: a context manager, or what `ctx()` makes for each call.

    Raises:
        TypeError: both would do: a context manager that can be called.
        RuntimeError: `func` is a class.
    """
    if callable(ctx) and hasattr(type(ctx), "__enter__"):
        raise TypeError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous which "
            "interface to use. If you intended to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context manager directly, rewrite your call as "
            "context_decorator(lambda: ctx)"
        )
    if isinstance(func, type):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have the context "
            "manager applied. Hint: decorate the methods that should have it."
        )
    return _decorate(ctx if callable(ctx) else lambda: ctx, func)
