"""What `torchrun` tells of a worker that failed: without it an error is reported by Python, as any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...._absent import getattr_of

__all__ = ["ChildFailedError", "record"]

_F = TypeVar("_F", bound=Callable[..., Any])


class ChildFailedError(Exception):
    """The error of an agent whose workers failed; there are no agents here, so nothing raises it."""


def record(fn: _F, error_handler: Any = None) -> _F:
    """The function itself: what it raises goes to its caller."""
    return fn


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
