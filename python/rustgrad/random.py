"""`rustgrad.random`: seeding. On the CPU a seed gives PyTorch's values; GPUs have a generator of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from . import _C
from ._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._typing import DeviceLike

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[DeviceLike] | None = None, enabled: bool = True, device_type: str = "gpu"
) -> Iterator[None]:
    """Restores the states of the default generators, of the CPU and of GPUs, at the end of the block."""
    if not enabled:
        yield
        return
    states = _C._rng_states()
    try:
        yield
    finally:
        _C._set_rng_states(*states)


def __dir__() -> list[str]:
    return __all__
