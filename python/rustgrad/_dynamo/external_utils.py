"""Names of PyTorch's compiler that libraries import: `optimize`, from before `compile`, and whether something is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..compiler import compile, is_compiling

__all__ = ["is_compiling", "optimize", "wrap_inline"]


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    guard_export_fn: Any = None,
    dynamic: bool | None = None,
    **options: Any,
) -> Callable[[Any], Any]:
    """The decorator `compile(backend=backend, fullgraph=nopython, dynamic=dynamic)`."""
    return lambda model: compile(model, backend=backend, fullgraph=nopython, dynamic=dynamic)


def wrap_inline(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another."""

    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner
