"""Contexts around ops on split tensors, of which there are none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["implicit_replication"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Ops as they are: there are no split tensors with which plain ones could be mixed."""
    yield
