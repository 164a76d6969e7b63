"""`rustgrad.fx.experimental`: `optimization`, which folds normalisations; what PyTorch has besides belongs to its compiler."""

from __future__ import annotations

from ..._absent import getattr_of

__all__: list[str] = []
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
