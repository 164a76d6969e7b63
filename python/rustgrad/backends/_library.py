"""What the modules of libraries that are not used have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["Verbose"]


class Verbose:
    """`with verbose(level):` a block without effect: there is no library that would print."""

    def __init__(self, level: int = 0) -> None:
        self.level = level

    def __enter__(self) -> Verbose:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
