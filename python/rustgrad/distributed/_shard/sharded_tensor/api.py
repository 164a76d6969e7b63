"""`ShardedTensor`: a class to ask about; there are no objects of it."""

from __future__ import annotations

from ...._absent import getattr_of
from ..._refusals import refusing_class

__all__ = ["ShardedTensor"]

ShardedTensor = refusing_class(__package__, "ShardedTensor", "each process has whole tensors.")
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
