"""`rustgrad.cuda.streams`: streams and events; everything here is in `rustgrad.cuda` too."""

from __future__ import annotations

from . import (
    Event,
    Stream,
)

__all__ = [
    "Event",
    "Stream",
]


def __dir__() -> list[str]:
    return __all__
