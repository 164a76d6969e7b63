"""`rustgrad.random`: seeding. One generator, keyed by element index: a seed gives the same values on every device."""

from __future__ import annotations

import contextlib

from . import _C
from ._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    """Restores the generator's state at the end of the block. One state serves all devices."""
    if not enabled:
        yield
        return
    state = _C.get_rng_state()
    try:
        yield
    finally:
        _C.set_rng_state(state)


def __dir__() -> list[str]:
    return __all__
