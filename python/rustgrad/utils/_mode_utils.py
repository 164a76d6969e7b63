"""A block without dispatch to modes, which runs as any other here, and whether modes are the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .._C import DisableTorchFunctionSubclass

__all__: list[str] = []


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """A block in which calls reach no `__torch_function__` of subclasses."""
    with DisableTorchFunctionSubclass():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)
