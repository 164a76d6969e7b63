"""`rustgrad.gpu`: what can be asked of and done with the GPU (any vendor's, through wgpu)."""

from . import _C
from ._C import device

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "stats",
    "synchronize",
]


def _index(which):
    """The number of a device given as None, number, string or `device`."""
    if which is None:
        return 0
    if isinstance(which, int):
        return which
    which = device(which)
    if which.type != "gpu":
        raise ValueError(f"Expected a gpu device, but got: {which}")
    return which.index or 0


def is_available():
    """Whether a GPU adapter (a software one counts) can be used. Never raises."""
    return _C._gpu_device_count() > 0


def device_count():
    """The number of adapters."""
    return _C._gpu_device_count()


def current_device():
    """The number of the device that "gpu" means: 0."""
    return 0


def get_device_name(device=None):
    """The adapter's name, for instance "NVIDIA H200" or "llvmpipe (LLVM 15.0.6, 256 bits)".

    Raises:
        RuntimeError: there is no such adapter.
    """
    return _C._gpu_device_name(_index(device))


def synchronize(device=None):
    """Waits until everything submitted to the device is done."""
    _C._gpu_synchronize(_index(device))


def memory_allocated(device=None):
    """Bytes held by tensors on the device."""
    return _C._gpu_memory_allocated(_index(device))


def stats(device=None):
    """Counters as a dict: dispatches, submissions, pipelines, pooled bytes and the like."""
    return _C._gpu_stats(_index(device))


def empty_cache():
    """Gives the memory of the buffer pools back."""
    _C._empty_cache()


def manual_seed(seed):
    """Seeds the generator; there is one for all devices, since values depend on seed and index alone."""
    _C.manual_seed(seed)


manual_seed_all = manual_seed
