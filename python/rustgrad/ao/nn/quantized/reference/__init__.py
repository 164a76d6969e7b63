"""`rustgrad.ao.nn.quantized.reference`: float layers that compute with dequantised weights."""

from __future__ import annotations

from ....._absent import getattr_of
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
