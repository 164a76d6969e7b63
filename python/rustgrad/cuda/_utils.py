"""Where PyTorch keeps `_get_device_index` of GPUs: libraries import it from here."""

from __future__ import annotations

from .._utils import _get_device_index as _get_device_index

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
