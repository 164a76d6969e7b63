"""A name that libraries import beside `vmap`."""

from __future__ import annotations

from typing import Any


class TransformGetItemToIndex:
    """A block without effect: an index that is a batched number is an index tensor already."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
