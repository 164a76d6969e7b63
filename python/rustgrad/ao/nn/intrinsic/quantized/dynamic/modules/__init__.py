"""The fused modules of dynamic quantisation."""

from __future__ import annotations

from .linear_relu import LinearReLU

__all__ = ["LinearReLU"]


def __dir__() -> list[str]:
    return __all__
