"""`rustgrad.accelerator`: device-independent names for the functions of `rustgrad.gpu`."""

from __future__ import annotations

import importlib
from typing import Any

from .. import gpu as _gpu
from .._C import device
from .._C import device as _device
from .._own import OWN as _OWN
from .._typing import DeviceLike

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_module",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]

is_available = _gpu.is_available
device_count = _gpu.device_count
synchronize = _gpu.synchronize
empty_cache = _gpu.empty_cache
memory_allocated = _gpu.memory_allocated
max_memory_allocated = _gpu.max_memory_allocated
memory_reserved = _gpu.memory_reserved
max_memory_reserved = _gpu.max_memory_reserved
memory_stats = _gpu.memory_stats
reset_peak_memory_stats = _gpu.reset_peak_memory_stats
current_device_index = current_device_idx = _gpu.current_device


def current_accelerator(check_available: bool = False) -> device | None:
    """The device of the accelerator, `device("gpu")`; None if `check_available` and there is none."""
    return _device("gpu") if is_available() or not check_available else None


def empty_host_cache() -> None:
    """No effect: no memory of the host is kept for copies."""


def reset_accumulated_memory_stats(device: DeviceLike | None = None) -> None:
    """No effect: `memory_stats` has no figures that accumulate."""


def set_device_index(device: DeviceLike) -> None:
    """Accepts device 0, which "gpu" always means.

    Raises:
        RuntimeError: another index.
    """
    _gpu.set_device(device)


set_device_idx = set_device_index


class device_index:
    """`with device_index(0):` a block on one device, or on the current one if None."""

    def __init__(self, device: int | None) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *error: Any) -> None:
        pass


def get_device_module(device: DeviceLike | None = None) -> Any:
    """The namespace of a kind of device, of the accelerator if None and there is one: `gpu`, `cpu`, `cuda`.

    Raises:
        RuntimeError: there is no such namespace.
    """
    if isinstance(device, str):
        kind = device.partition(":")[0]
    elif device is None:
        kind = "gpu" if is_available() else "cpu"
    else:
        kind = _device(device).type
    try:
        return importlib.import_module(f"{_OWN}.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Invalid device module '{kind}'; expected a kind of device that has a namespace: cpu, cuda, gpu, mps, xpu."
        ) from None


def __getattr__(name: str) -> Any:
    if name == "memory":
        return importlib.import_module(f"{__name__}.memory")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)


def __dir__() -> list[str]:
    return __all__
