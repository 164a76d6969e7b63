"""Decorators that libraries put on translations which they register."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the translation gets values and numbers as they are, so descriptors ("v", "i", "is", "f", "b", "s") change nothing."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(g: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(arg_descriptors):
                raise TypeError(
                    f"{function.__name__}: expected at most {len(arg_descriptors)} arguments, got {len(args)}"
                )
            return function(g, *args, **kwargs)

        return wrapped

    return decorate


def quantized_args(*arg_q_descriptors: bool, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns its function: there are no quantised tensors."""
    return lambda function: function
