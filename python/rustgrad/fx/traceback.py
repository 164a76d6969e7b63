"""What a tracer tells about the program's frames: nothing is kept between runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["annotate", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta"]


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block without effect: nodes keep no metadata of other nodes."""
    yield


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block without effect."""
    yield


def has_preserved_node_meta() -> bool:
    """False."""
    return False


def get_current_meta() -> dict[str, Any]:
    """An empty dictionary."""
    return {}
