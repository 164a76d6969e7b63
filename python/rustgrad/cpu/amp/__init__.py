"""Deprecated: `rustgrad.amp` with `"cpu"` as the device."""

from __future__ import annotations

from .autocast_mode import autocast as autocast
from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast"]


def __dir__() -> list[str]:
    return __all__
