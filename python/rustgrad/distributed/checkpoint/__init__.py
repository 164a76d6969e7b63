"""`rustgrad.distributed.checkpoint`: state dicts by the names of parameters, for one process; no files in pieces."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._absent import getattr_of

__all__ = ["async_save", "load", "save"]


def _refusing(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"distributed.checkpoint.{name}: there are no checkpoints in pieces; expected one process. "
            "Hint: save the state dict with rustgrad.save."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: there are no checkpoints in pieces."
    return function


async_save, load, save = map(_refusing, __all__)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
