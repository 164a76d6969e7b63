"""`rustgrad.ao.nn.quantized`: layers of quantised tensors with quantised weights."""

from __future__ import annotations

from ...._absent import getattr_of
from . import functional as functional
from .modules import *  # noqa: F403
from .modules import MaxPool2d as MaxPool2d
from .modules import __all__ as __all__

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
