"""`ShardedTensor`: a class to ask about; there are no objects of it."""

from __future__ import annotations

from ...._absent import getattr_of
from .api import ShardedTensor

__all__ = ["ShardedTensor"]

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
