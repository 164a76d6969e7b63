"""`rustgrad.mps`: there is no device of that name. Apple's GPUs are used through `gpu`, like any vendor's."""

from __future__ import annotations

from . import _C
from ._absent import getattr_of
from ._C import Tensor

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]


def is_available() -> bool:
    """False: use `rustgrad.gpu.is_available()`."""
    return False


def device_count() -> int:
    """0."""
    return 0


def _refuse(name):
    raise RuntimeError(f"mps.{name}: there is no MPS in rustgrad. Use rustgrad.gpu and device='gpu'.")


def synchronize() -> None:
    """RuntimeError: there is no device."""
    _refuse("synchronize")


def empty_cache() -> None:
    """No effect: no memory is held."""


def current_allocated_memory() -> int:
    """0: no memory is held."""
    return 0


def driver_allocated_memory() -> int:
    """0: no memory is held."""
    return 0


def recommended_max_memory() -> int:
    """RuntimeError: there is no device."""
    _refuse("recommended_max_memory")


def set_per_process_memory_fraction(fraction: float) -> None:
    """RuntimeError: there is no device."""
    _refuse("set_per_process_memory_fraction")


def manual_seed(seed: int) -> None:
    """No effect, as in PyTorch without such a device."""


def seed() -> None:
    """No effect."""


def get_rng_state() -> Tensor:
    """The state of the CPU's generator: there is no device."""
    return _C.get_rng_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of the CPU's generator."""
    _C.set_rng_state(new_state)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
