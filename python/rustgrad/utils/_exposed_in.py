"""A decorator that says to which module a function belongs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., object])


def exposed_in(module: str) -> Callable[[F], F]:
    """Sets the `__module__` of a function."""

    def wrapper(fn: F) -> F:
        fn.__module__ = module
        return fn

    return wrapper
