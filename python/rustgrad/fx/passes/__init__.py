"""`rustgrad.fx.passes`: `shape_prop`, which notes the shapes of a graph's values, and `utils`, which finds patterns."""

from __future__ import annotations

from ..._absent import getattr_of
from . import shape_prop as shape_prop
from . import utils as utils

__all__ = ["shape_prop", "utils"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
