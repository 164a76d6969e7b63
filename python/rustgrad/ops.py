"""`rustgrad.ops`: ops by namespace, `rustgrad.ops.aten.relu(x)`, and those registered with `rustgrad.library`."""

from __future__ import annotations

from typing import Any

from . import _ops

__all__ = ["load_library"]


def load_library(path: Any) -> None:
    """OSError: libraries of compiled ops are written for PyTorch's C++ interface."""
    _ops.ops.load_library(path)


def __getattr__(name: str) -> Any:
    return getattr(_ops.ops, name)
