"""`Join` under its name in PyTorch."""

from ..join import Join as Join
from ..join import Joinable as Joinable
from ..join import JoinHook as JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


def __dir__() -> list[str]:
    return __all__
