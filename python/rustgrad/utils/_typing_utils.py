"""Helpers for static types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__: list[str] = []

T = TypeVar("T")


def not_none(obj: T | None) -> T:
    """The object; TypeError for None."""
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


def copy_func_params(source_func: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that says to a type checker that a function has the arguments of another; it returns the function."""
    return lambda func: func


copy_method_params = copy_func_sig = copy_method_sig = copy_func_params
