"""A block without dispatch to Python, and whether modes are the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _C

__all__: list[str] = []


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """A block in which calls reach no mode and no class below autograd, and no `__torch_function__` of subclasses."""
    from .._dispatch import _classes

    with _classes.disabled(), _C.DisableTorchFunctionSubclass():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)
