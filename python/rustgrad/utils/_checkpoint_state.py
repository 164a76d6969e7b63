"""What a recomputation finds as the first computation did: random state and autocast; where both number saved tensors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._base import Tensor

__all__ = ["Surroundings", "packing", "random_state"]

_KINDS = ("cpu", "gpu")


@contextlib.contextmanager
def random_state(states: Any) -> Iterator[None]:
    """Sets the states of the default generators for a block and restores theirs afterwards; None changes nothing."""
    if states is None:
        yield
        return
    now = _C._rng_states()
    _C._set_rng_states(*states)
    try:
        yield
    finally:
        _C._set_rng_states(*now)


def _regions():
    return [_C._autocast_state(kind) for kind in _KINDS], _C.is_autocast_cache_enabled()


class Surroundings:
    """The random state and the state of autocast at one moment."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.random = _C._rng_states() if preserve_rng_state else None
        self.regions = _regions()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block with both as they were."""
        with random_state(self.random), contextlib.ExitStack() as stack:
            if _regions() != self.regions:
                from ..amp import autocast

                states, cached = self.regions
                for kind, (on, dtype) in zip(_KINDS, states, strict=True):
                    stack.enter_context(autocast(kind, dtype=dtype, enabled=on, cache_enabled=cached))
            yield


class _Packing(threading.local):
    """Where the checkpoint that is being computed in this thread numbers what is saved."""

    pack: Callable[[Tensor], Any] | None = None
    unpack: Callable[[Any], Tensor] | None = None

    @contextlib.contextmanager
    def by(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor] | None = None) -> Iterator[None]:
        """A block in which these number it."""
        before = self.pack, self.unpack
        self.pack, self.unpack = pack, unpack
        try:
            yield
        finally:
            self.pack, self.unpack = before


packing = _Packing()
