"""`rustgrad.xpu`: there are no XPU devices here. Intel's GPUs are reached as `gpu`, like any vendor's."""

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


def is_available():
    """False."""
    return False


def is_initialized():
    """False."""
    return False


def device_count():
    """0."""
    return 0


def _refuse(name):
    raise RuntimeError(f"xpu.{name}: there is no XPU in rustgrad. Use rustgrad.gpu and device='gpu'.")


def current_device():
    """RuntimeError: there is none."""
    _refuse("current_device")


def synchronize(device=None):
    """RuntimeError: there is nothing to wait for."""
    _refuse("synchronize")


def empty_cache():
    """Nothing: no memory is held."""


def manual_seed(seed):
    """Nothing, as in PyTorch without such a device."""


manual_seed_all = manual_seed
