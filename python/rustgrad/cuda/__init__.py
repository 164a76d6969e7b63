"""`rustgrad.cuda`: the API of a build without CUDA, so that `cuda.is_available()` checks work.

Under `python -m rustgrad script.py` it controls the GPU instead, of any vendor.
"""

from __future__ import annotations

import importlib
import warnings
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from .. import _C, _streams
from .. import gpu as _gpu
from .._C import Tensor
from .._typed import make_types
from .._typing import DeviceLike

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graphs",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "ipc_collect",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "random",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

_stands_for_gpu = False
globals().update(make_types("cuda"))  # FloatTensor, LongTensor, ...


def _gpu_or(name):
    if not _stands_for_gpu:
        raise RuntimeError(
            f"cuda.{name}: there is no CUDA in rustgrad. Use rustgrad.gpu and device='gpu': any vendor's GPU will do."
        )
    return getattr(_gpu, name)


def is_available() -> bool:
    """False; under `python -m rustgrad`, whether there is a GPU."""
    return _stands_for_gpu and _gpu.is_available()


def device_count() -> int:
    """0; under `python -m rustgrad`, the number of GPUs."""
    return _gpu.device_count() if _stands_for_gpu else 0


def current_device() -> int:
    """The index of the current device; RuntimeError without one."""
    return _gpu_or("current_device")()


class device:
    """`with device(0):` a block on one device. A negative number, None, or any number without a device: no effect."""

    def __init__(self, device: DeviceLike | None) -> None:
        self.idx = -1 if device is None else _index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0 and is_available():
            set_device(self.idx)

    def __exit__(self, *error: Any) -> None:
        pass


class device_of(device):
    """`with device_of(tensor):` a block on the device of a tensor; no effect for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def _index_of(which):
    """The number of a device that is named by a number, a string or a `device`; ValueError for another kind of device."""
    if isinstance(which, int):
        return which
    named = _C.device(which)
    if named.type not in ("gpu", "cuda"):
        raise ValueError(f"Expected a cuda device, but got: {named}")
    return named.index or 0


def get_arch_list() -> list[str]:
    """No names: nothing is compiled for architectures of NVIDIA."""
    return []


def is_current_stream_capturing() -> bool:
    """False: work is not recorded into graphs of a device."""
    return False


def mem_get_info(device: DeviceLike | None = None) -> tuple[int, int]:
    """RuntimeError: wgpu does not say how much memory an adapter has or has left."""
    _gpu_or("_index")(device)
    raise RuntimeError("cuda.mem_get_info: the memory of an adapter is not reported. Use memory_allocated.")


def get_device_name(device: DeviceLike | None = None) -> str:
    """The name of a device; RuntimeError without one."""
    return _gpu_or("get_device_name")(device)


def get_device_properties(device: DeviceLike | None = None) -> Any:
    """Name, driver and limits of the adapter, as in `rustgrad.gpu`; RuntimeError without a device."""
    return _gpu_or("get_device_properties")(device)


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """(0, 0): wgpu does not report NVIDIA's architecture; RuntimeError without a device."""
    _gpu_or("_index")(device)
    return 0, 0


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """The maximum of bytes in use since the start or since `reset_peak_memory_stats`; 0 without a device."""
    return _gpu.max_memory_allocated(device) if is_available() else 0


def max_memory_reserved(device: DeviceLike | None = None) -> int:
    """The most of `memory_reserved` since the start or since `reset_peak_memory_stats`; 0 without a device."""
    return _gpu.max_memory_reserved(device) if is_available() else 0


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes in use and in the pool of the device; 0 without one."""
    return _gpu.memory_reserved(device) if is_available() else 0


def memory_stats(device: DeviceLike | None = None) -> OrderedDict[str, int]:
    """Memory statistics by name; empty without a device."""
    return OrderedDict(_gpu.memory_stats(device) if is_available() else ())


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Resets `max_memory_allocated` to the bytes in use; RuntimeError without a device."""
    _gpu_or("reset_peak_memory_stats")(device)


def reset_max_memory_allocated(device: DeviceLike | None = None) -> None:
    """Deprecated: `reset_peak_memory_stats`."""
    warnings.warn(
        "torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak "
        "memory stats.",
        FutureWarning,
        stacklevel=2,
    )
    reset_peak_memory_stats(device)


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes in use on the device; 0 without one."""
    return _gpu.memory_allocated(device) if is_available() else 0


def synchronize(device: DeviceLike | None = None) -> None:
    """Waits for the device; RuntimeError without one."""
    _gpu_or("synchronize")(device)


def empty_cache() -> None:
    """Releases pooled memory; no effect without a device."""
    if is_available():
        _gpu.empty_cache()


def manual_seed(seed: int) -> None:
    """No effect without a device, as in PyTorch."""
    if _stands_for_gpu:
        _gpu.manual_seed(seed)


manual_seed_all = manual_seed


def init() -> None:
    """RuntimeError without a device; with one there is nothing to do."""
    _gpu_or("current_device")


def is_initialized() -> bool:
    """As `is_available`: nothing has to be initialised."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: bfloat16 is computed on the CPU only."""
    return False


def set_device(device: DeviceLike) -> None:
    """Accepts number 0, the GPU that "cuda" always means under `python -m rustgrad`; RuntimeError for another or without one."""
    _gpu_or("set_device")(device)


initial_seed = _C.initial_seed
seed = seed_all = _C.seed


def get_rng_state(device: DeviceLike = "cuda") -> Tensor:
    """The state of the GPUs' default generator: its seed and its position, in 16 bytes."""
    return _C._rng_states()[1]


def set_rng_state(new_state: Tensor, device: DeviceLike = "cuda") -> None:
    """Sets the state of the GPUs' default generator."""
    _C._set_rng_states(None, new_state)


def get_rng_state_all() -> list[Tensor]:
    """The state of the GPUs' default generator as a list of one: it is shared by all of them."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets the state of the GPUs' default generator from a list of one."""
    for state in new_states:
        set_rng_state(state)


OutOfMemoryError = _C.OutOfMemoryError


class Stream(_streams.Stream):
    """The one order in which a GPU works: streams are accepted and all mean it. RuntimeError without a device."""

    def __init__(self, device: DeviceLike | None = None, priority: int = 0, **kwargs: Any) -> None:
        _gpu_or("synchronize")
        super().__init__("gpu" if device is None else device)

    def record_event(self, event: _streams.Event | None = None) -> _streams.Event:
        """An event after the work so far."""
        return super().record_event(event or Event())


class Event(_streams.Event):
    """A point in the work of the GPU. RuntimeError without a device.

    Recording one with `enable_timing` waits for the device, so that `elapsed_time` is that of the work in between.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        _gpu_or("synchronize")
        super().__init__("gpu", enable_timing=enable_timing)


class CUDAGraph:
    """RuntimeError: work is not recorded into graphs of a device."""

    def __init__(self, keep_graph: bool = False) -> None:
        raise RuntimeError(
            "cuda.CUDAGraph: there are no graphs of a device here. Hint: leave out the capture; the work runs as it is."
        )


class graph:
    """RuntimeError: see `CUDAGraph`."""

    def __init__(
        self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        CUDAGraph()


class StreamContext:
    """`with stream(s):` a block without effect: there is one order."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """`with stream(s):` a block without effect: there is one order."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """No effect: there is one order."""


def current_stream(device: DeviceLike | None = None) -> Stream:
    """The one stream; RuntimeError without a device."""
    return Stream(device)


default_stream = current_stream


def ipc_collect() -> None:
    """No effect: a GPU's memory is not shared between processes."""


def memory_summary(device: DeviceLike | None = None, abbreviated: bool = False) -> str:
    """The memory statistics as text, one a line; empty without a device."""
    return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())


def __getattr__(name: str) -> object:
    if name in ("amp", "comm", "graphs", "gds", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "streams"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "_initialized":  # asked by code that keeps the generator's state around a checkpointed block
        return is_initialized()
    if name in ("_lazy_call", "_lazy_init", "default_generators"):
        return getattr(importlib.import_module(f"{__name__}._private"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)


def __dir__() -> list[str]:
    return __all__
