"""Functions around random numbers, under the module name of PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..random import fork_rng, manual_seed

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Random states are after the block what they were before it."""
    with fork_rng():
        yield


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function after seed 42; random states stay as they were."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
