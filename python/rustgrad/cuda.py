"""`rustgrad.cuda`: the honest answers of a library without CUDA, so that `cuda.is_available()` checks work.

Under `python -m rustgrad script.py` the answers are the GPU's instead, whatever its vendor.
"""

from . import gpu as _gpu

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "synchronize",
]

_stands_for_gpu = False


def _gpu_or(name):
    if not _stands_for_gpu:
        raise RuntimeError(
            f"cuda.{name}: there is no CUDA in rustgrad. Use rustgrad.gpu and device='gpu': any vendor's GPU will do."
        )
    return getattr(_gpu, name)


def is_available():
    """False; under `python -m rustgrad`, whether there is a GPU."""
    return _stands_for_gpu and _gpu.is_available()


def device_count():
    """0; under `python -m rustgrad`, the number of GPUs."""
    return _gpu.device_count() if _stands_for_gpu else 0


def current_device():
    """The number of the current device; RuntimeError without one."""
    return _gpu_or("current_device")()


def get_device_name(device=None):
    """The name of a device; RuntimeError without one."""
    return _gpu_or("get_device_name")(device)


def memory_allocated(device=None):
    """Bytes in use on the device; 0 without one."""
    return _gpu.memory_allocated(device) if is_available() else 0


def synchronize(device=None):
    """Waits for the device; RuntimeError without one."""
    _gpu_or("synchronize")(device)


def empty_cache():
    """Gives pooled memory back; nothing to do without a device."""
    if is_available():
        _gpu.empty_cache()


def manual_seed(seed):
    """Without a device, silently nothing, as in PyTorch."""
    if _stands_for_gpu:
        _gpu.manual_seed(seed)


manual_seed_all = manual_seed
