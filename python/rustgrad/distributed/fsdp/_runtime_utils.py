"""Steps of PyTorch's first way to split parameters over processes, which libraries import: nothing is split here."""

from __future__ import annotations

from ..._absent import getattr_of
from .._refusals import refusing_function

__all__: list[str] = []

_NONE = "no parameters are split over processes, so none were gathered."
_post_backward_final_callback = refusing_function(__name__, "_post_backward_final_callback", _NONE)
_reshard = refusing_function(__name__, "_reshard", _NONE)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
