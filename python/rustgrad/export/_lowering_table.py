"""The table of lowerings: what functions are in ATen, where that is not one op of the same name and arguments.

A lowering has the signature of the function; `r(name, *args)` runs an op and records it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["lower", "lowering", "signature", "table"]

table: dict[str, Callable[..., Any]] = {}


@functools.cache
def _fill() -> None:
    for name in ("_lowerings", "_lowerings_nn"):
        importlib.import_module(f".{name}", __package__)


def lowering(key: str) -> Callable[..., Any] | None:
    """The lowering of a function; None where the op of its name is taken as it is called."""
    _fill()
    return table.get(key)


def lower(*keys: str) -> Callable[..., Any]:
    """Adds a lowering under these names."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            table[key] = function
        return function

    return add


def signature(function: Any) -> inspect.Signature | None:
    """The signature of a function; None where it has none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
