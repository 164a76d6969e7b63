"""Private names of `optim.lr_scheduler` that schedulers of other libraries import."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._lr_base import LRScheduler

__all__: list[str] = []


@contextlib.contextmanager
def _marked(scheduler: Any, name: str) -> Iterator[None]:
    setattr(scheduler, name, True)
    try:
        yield
    finally:
        setattr(scheduler, name, False)


def _initial_mode(o: LRScheduler) -> Any:
    """A block in which `get_lr` knows that it is called by the constructor."""
    return _marked(o, "_is_initial")


def _enable_get_lr_call(o: LRScheduler) -> Any:
    """A block in which `get_lr` knows that it is called by `step`."""
    return _marked(o, "_get_lr_called_within_step")


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """The warning of a `get_lr` that is not called by `step`."""
    lr_scheduler._check_within_step()
