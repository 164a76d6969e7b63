"""The class of parameters that are split over processes, which libraries import: there are none here."""

from __future__ import annotations

from ..._absent import getattr_of
from .._refusals import refusing_class

__all__ = ["FlatParamHandle"]

FlatParamHandle = refusing_class(__name__, "FlatParamHandle", "no parameters are split over processes.")
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
