"""`rustgrad.ao`: the namespaces of quantisation and pruning."""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import absent as _absent

__all__ = ["nn", "pruning", "quantization"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise _absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
