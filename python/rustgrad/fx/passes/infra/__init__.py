"""`rustgrad.fx.passes.infra`: passes and their managers, and the partitioner."""

from __future__ import annotations

from ...._absent import getattr_of
from . import pass_base as pass_base

__all__ = ["pass_base"]
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
