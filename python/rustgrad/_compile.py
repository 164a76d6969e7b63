"""The private decorator by which PyTorch's own functions are left to the interpreter."""

from __future__ import annotations

from typing import Any

from .compiler import disable

__all__: list[str] = []


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """`compiler.disable`, of a function or as a decorator with arguments."""
    return disable(fn, recursive)
