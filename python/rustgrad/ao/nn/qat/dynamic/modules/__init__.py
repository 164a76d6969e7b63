"""The modules of training for dynamic quantisation."""

from __future__ import annotations

from .linear import Linear

__all__ = ["Linear"]


def __dir__() -> list[str]:
    return __all__
