"""Fused modules."""

from __future__ import annotations

from .fused import *  # noqa: F403
from .fused import __all__ as __all__
from .fused import _FusedModule as _FusedModule


def __dir__() -> list[str]:
    return __all__
