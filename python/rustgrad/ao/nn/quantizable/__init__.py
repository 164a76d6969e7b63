"""`rustgrad.ao.nn.quantizable`: layers whose parts are modules, so that each can be observed and quantised."""

from __future__ import annotations

from .modules import *  # noqa: F403
from .modules import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
