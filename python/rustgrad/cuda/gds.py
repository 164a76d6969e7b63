"""Files that a GPU reads by itself (GPUDirect Storage), which are not here: all but `is_available` raises RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["GdsFile", "gds_deregister_buffer", "gds_register_buffer", "is_available"]


def is_available() -> bool:
    """False."""
    return False


def gds_register_buffer(s: Any) -> NoReturn:
    """Registers a storage."""
    raise RuntimeError("torch._C._gds_register_buffer is not supported on this platform")


def gds_deregister_buffer(s: Any) -> NoReturn:
    """Ends what `gds_register_buffer` began."""
    raise RuntimeError("torch._C._gds_deregister_buffer is not supported on this platform")


class GdsFile:
    """A file of GPUDirect Storage."""

    def __init__(self, filename: str, flags: int) -> None:
        raise RuntimeError("torch._C._gds_register_handle is not supported on this platform")
