"""`Timer`, where PyTorch keeps it."""

from .._timer import Language, Timer, timer

__all__ = ["Language", "Timer", "timer"]


def __dir__() -> list[str]:
    return __all__
