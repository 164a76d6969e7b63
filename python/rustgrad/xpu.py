"""`rustgrad.xpu`: there are no XPU devices. Intel's GPUs are used through `gpu`, like any vendor's."""

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


def _refuse(name):
    raise RuntimeError(f"xpu.{name}: there is no XPU in rustgrad. Use rustgrad.gpu and device='gpu'.")


def current_device() -> int:
    """RuntimeError: there is no device."""
    _refuse("current_device")


def synchronize(device: DeviceLike | None = None) -> None:
    """RuntimeError: there is no device."""
    _refuse("synchronize")


def empty_cache() -> None:
    """No effect: no memory is held."""


def manual_seed(seed: int) -> None:
    """No effect, as in PyTorch without such a device."""


manual_seed_all = manual_seed


def __dir__() -> list[str]:
    return __all__
