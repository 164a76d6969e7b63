"""What the modules of libraries that are not used have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["Verbose", "stored"]


class Verbose:
    """`with verbose(level):` a block without effect: there is no library that would print."""

    def __init__(self, level: int = 0) -> None:
        self.level = level

    def __enter__(self) -> Verbose:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


@contextlib.contextmanager
def stored(module: Any, **values: Any) -> Iterator[None]:
    """Stores settings of a module for a block."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)
