"""`rustgrad.gpu`: queries and control of the GPU (any vendor's, through wgpu).

The devices are `gpu:0`, `gpu:1` ..: the hardware adapters, or those that the environment variable `RUSTGRAD_GPU` picks;
"gpu" is `gpu:0`. Copies between two of them go through the host. A function that takes a device takes None, a number, a
string or a `rustgrad.device`, and raises RuntimeError for one that is not there.
"""

from __future__ import annotations

import atexit
import contextlib
from types import SimpleNamespace

from . import _C
from ._C import device
from ._typing import DeviceLike

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "stats",
    "synchronize",
]


@atexit.register
def _settle():
    """Waits for the device at exit: a software driver that is still compiling then often crashes."""
    with contextlib.suppress(RuntimeError, IndexError):
        _C._gpu_synchronize()


def _index(which):
    """The index of a device given as None, index, string or `device`."""
    if which is not None and not isinstance(which, int):
        which = device(which)
        if which.type != "gpu":
            raise ValueError(f"Expected a gpu device, but got: {which}")
        which = which.index
    index = which or 0
    if index != 0:
        # Counting finds adapters, which takes a while: only where the number needs it.
        count = _C._gpu_device_count()
        if not 0 < index < count:
            drives = "1 GPU (RUSTGRAD_GPU picks it)" if count <= 1 else f"{count} GPUs (RUSTGRAD_GPU picks them)"
            raise RuntimeError(f"invalid device index {index}; this process drives {drives}")
    return index


def is_available() -> bool:
    """Whether there is a GPU. A software adapter (lavapipe) counts only if `RUSTGRAD_GPU` selects it. Never raises."""
    return _C._gpu_is_available()


def device_count() -> int:
    """The number of devices; 0 where none is available. A software adapter counts only where `RUSTGRAD_GPU` picks it."""
    return _C._gpu_device_count() if _C._gpu_is_available() else 0


def current_device() -> int:
    """The index of the current device: 0."""
    return 0


def set_device(device: DeviceLike) -> None:
    """Accepts device 0, which "gpu" always means.

    Raises:
        RuntimeError: another device. Name it where a tensor is made: `device="gpu:1"`.
    """
    if index := _index(device):
        raise RuntimeError(f'set_device: "gpu" always means gpu:0; expected 0, got {index}. Use device="gpu:{index}".')


def get_device_name(device: DeviceLike | None = None) -> str:
    """The adapter's name, for instance "NVIDIA H200 (Vulkan)" or "llvmpipe (LLVM 15.0.6, 256 bits) (Vulkan)".

    Raises:
        RuntimeError: there is no such adapter.
    """
    return _C._gpu_device_name(_index(device))


def get_device_properties(device: DeviceLike | None = None) -> SimpleNamespace:
    """The adapter's name, backend, type, driver, limits in bytes, has_int64, has_float64.

    Raises:
        RuntimeError: there is no such adapter.
    """
    found = _C._gpu_properties(_index(device))
    numbers = {k: int(v) for k, v in found.items() if k.startswith("max_")}
    flags = {k: v == "true" for k, v in found.items() if k.startswith("has_")}
    return SimpleNamespace(**found | numbers | flags)


def synchronize(device: DeviceLike | None = None) -> None:
    """Waits until everything submitted to any GPU is done; errors found on the device are raised here at the latest."""
    _index(device)
    _C._gpu_synchronize()


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes held by tensors on the device."""
    return _C._gpu_memory(_index(device))[0]


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """The most bytes that tensors held on the device since the start or since `reset_peak_memory_stats`."""
    return _C._gpu_memory(_index(device))[1]


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes held by tensors and by the pool of buffers that wait to be used again."""
    return _C._gpu_memory(_index(device))[2]


def max_memory_reserved(device: DeviceLike | None = None) -> int:
    """The most of `memory_reserved` since the start or since `reset_peak_memory_stats`."""
    return _C._gpu_memory(_index(device))[3]


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Starts `max_memory_allocated` and `max_memory_reserved` again from what is held now."""
    _C._gpu_reset_peak_memory(_index(device))


def memory_stats(device: DeviceLike | None = None) -> dict[str, int]:
    """The four figures of memory under PyTorch's names."""
    current, peak, reserved, peak_reserved = _C._gpu_memory(_index(device))
    return {
        "allocated_bytes.all.current": current,
        "allocated_bytes.all.peak": peak,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": peak_reserved,
    }


def stats(device: DeviceLike | None = None) -> dict[str, int]:
    """Counters as a dict: dispatches, submits, waits, numbers and tensors read back, pipelines, buffers and bytes."""
    return _C._gpu_stats(_index(device))


def empty_cache() -> None:
    """Releases the memory of the buffer pools."""
    _C._empty_cache()


def manual_seed(seed: int) -> None:
    """Seeds the default generators, of the CPU and of GPUs."""
    _C.manual_seed(seed)


manual_seed_all = manual_seed


def __dir__() -> list[str]:
    return __all__
