"""`rustgrad.ao.nn.quantized.dynamic`: layers of float32 tensors, which are quantised by their own range, with quantised weights."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
