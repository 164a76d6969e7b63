"""Questions about the compiler."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """False: there is no code generator for any device."""
    return False
