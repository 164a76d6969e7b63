"""Ranges for Intel's tracing tools, which are not here: each function but `is_available` raises RuntimeError."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """False."""
    return False


def _refuse(*_: Any) -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg: str) -> NoReturn:
    """Starts a range."""
    _refuse()


def range_pop() -> NoReturn:
    """Ends a range."""
    _refuse()


def mark(msg: str) -> NoReturn:
    """Marks a time."""
    _refuse()


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block."""
    _refuse()
    yield
