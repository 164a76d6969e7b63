"""`rustgrad.fx.passes.utils`: `matcher_utils`, which finds a pattern in a graph."""

from __future__ import annotations

from ...._absent import getattr_of
from . import matcher_utils as matcher_utils

__all__ = ["matcher_utils"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
