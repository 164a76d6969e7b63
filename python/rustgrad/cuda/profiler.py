"""`rustgrad.cuda.profiler`: names of NVIDIA's profiler, which does not see this device; `rustgrad.profiler` does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """No effect."""


def stop() -> None:
    """No effect."""


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """A block without effect."""
    yield
