"""`rustgrad.__config__`: how the library was built and what it runs on."""

from __future__ import annotations

import platform

from . import _C
from . import gpu as _gpu
from .version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The version, the machine and the GPU, one per line."""
    device = _gpu.get_device_name() if _gpu.is_available() else "none"
    return f"rustgrad {__version__}\n  - {platform.machine()}, Python {platform.python_version()}\n  - GPU: {device}\n"


def parallel_info() -> str:
    """The number of threads that an op may use."""
    return f"threads: {_C.get_num_threads()}\n"
