"""`rustgrad.ao.nn.intrinsic.quantized.dynamic`: layers of dynamic quantisation that are several in one."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
