"""The passes of graph mode: fusion, observers, conversion. `quantize_fx` has the functions that programs call."""

from __future__ import annotations

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
