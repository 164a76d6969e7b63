"""What `functorch.experimental.control_flow` means under `python -m rustgrad`."""

from __future__ import annotations

from .._absent import getattr_of
from .._higher_order_ops import cond, map

__all__ = ["cond", "map"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
