"""`rustgrad.mtia`: there are no devices of Meta's. Libraries ask whether there is one."""

from __future__ import annotations

from ._typing import DeviceLike

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def memory_allocated(device: DeviceLike | None = None) -> int:
    """0: no memory is held."""
    return 0


def _refuse(name):
    raise RuntimeError(f"mtia.{name}: Cannot execute without MTIA backend. Use rustgrad.gpu and device='gpu'.")


def current_device() -> int:
    """RuntimeError: there is no device."""
    _refuse("current_device")


def set_device(device: DeviceLike) -> None:
    """RuntimeError: there is no device."""
    _refuse("set_device")


def synchronize(device: DeviceLike | None = None) -> None:
    """RuntimeError: there is no device."""
    _refuse("synchronize")


def empty_cache() -> None:
    """RuntimeError: there is no device."""
    _refuse("empty_cache")


def manual_seed(seed: int) -> None:
    """No effect, as in PyTorch without such a device."""


manual_seed_all = manual_seed


def __dir__() -> list[str]:
    return __all__
