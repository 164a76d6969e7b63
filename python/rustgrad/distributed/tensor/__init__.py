"""`rustgrad.distributed.tensor`: the class that libraries look for; no tensor is split over processes here."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import getattr_of
from ..._base import Tensor

__all__ = ["DTensor"]


class DTensor(Tensor):
    """The class of tensors that are split over processes, of which there are none here: it refuses to be called."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("DTensor: tensors are not split over processes here; expected a plain tensor.")


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
