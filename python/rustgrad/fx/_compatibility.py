"""`compatibility`: marks which names of `fx` PyTorch promises to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that returns what it is given."""

    def itself(fn: T) -> T:
        return fn

    return itself
