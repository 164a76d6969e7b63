"""`rustgrad.classes`: C++ classes of programs, of which there are none."""

from __future__ import annotations

from typing import Any

from . import _ops

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_ops.classes, name)
