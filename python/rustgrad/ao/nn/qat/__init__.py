"""`rustgrad.ao.nn.qat`: layers whose weights are rounded as quantised ones would be, for training."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
