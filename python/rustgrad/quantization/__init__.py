"""The old name of `rustgrad.ao.quantization`."""

from __future__ import annotations

from ..ao import quantization as _new
from ..ao.quantization import *  # noqa: F403

__all__ = list(_new.__all__)


def __getattr__(name: str) -> object:
    return getattr(_new, name)


def __dir__() -> list[str]:
    return __all__
