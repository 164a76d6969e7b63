"""`rustgrad.fx.passes`: `shape_prop`, which notes the shapes of a graph's values."""

from __future__ import annotations

from ..._absent import getattr_of
from . import shape_prop as shape_prop

__all__ = ["shape_prop"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
