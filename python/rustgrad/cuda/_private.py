"""Private names of `cuda` that libraries look up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import gpu

__all__: list[str] = []

# The generators of the devices, which are not objects here: `gpu.manual_seed` and `get_rng_state` reach them.
default_generators: tuple[Any, ...] = ()


def _lazy_init() -> None:
    """No effect: a device is ready when it is found."""


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    """Calls a function that has to wait for the device; without one it never runs, as in PyTorch."""
    if gpu.is_available():
        callable()
