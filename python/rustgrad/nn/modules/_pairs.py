"""What containers that are like dicts are updated with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["pairs_of"]


def pairs_of(owner: str, pairs: Iterable[Any], sep: str = "") -> Iterator[Any]:
    """Iterates over the (key, value) pairs given to `owner.update`, with its errors for malformed ones."""
    for j, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{j} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{j} has length {len(pair)}; 2 is required")
        yield pair
